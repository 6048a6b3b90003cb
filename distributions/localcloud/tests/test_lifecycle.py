"""Starting, using and describing the local cloud."""

import errno
import os
import subprocess
import sys

import pytest

from compilegate_localcloud import api, lifecycle
from compilegate_localcloud.errors import NoLogError, NotReadyError
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY, find_places

e2e = pytest.mark.e2e


@pytest.fixture
def own_pythons(monkeypatch):
    """This interpreter, which lacks the emulator's packages, for emulator and jobs."""
    for part in ("LOCALCLOUD", "TRAINING"):
        monkeypatch.setenv(f"COMPILEGATE_{part}_PYTHON", sys.executable)


def test_missing_environment_is_an_error_that_says_what_to_run(tmp_path):
    with pytest.raises(NotReadyError, match="make setup"):
        find_places(repository=tmp_path)


def test_local_cloud_that_never_ran_has_no_state(tmp_path, own_pythons):
    cloud = LocalCloud(tmp_path)
    status = api.status(cloud)

    assert (status.state, status.outputs, status.log_parts) == (None, None, ())
    assert api.down(cloud) is False
    with pytest.raises(NotReadyError, match="compilegate local up"):
        cloud.running_state().environment()
    with pytest.raises(NoLogError, match="has not run"):
        api.logs("emulator", cloud=cloud)


def test_a_python_for_the_jobs_without_the_container_toolkit_is_refused(tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setenv("COMPILEGATE_LOCALCLOUD_PYTHON", sys.executable)
    monkeypatch.setenv("COMPILEGATE_TRAINING_PYTHON", str(python))

    with pytest.raises(NotReadyError, match=f"{python}.* has no container toolkit. Fix: install"):
        LocalCloud(tmp_path / "home")


def test_emulator_that_does_not_start_shows_its_log(tmp_path, own_pythons):
    cloud = LocalCloud(tmp_path)

    with pytest.raises(NotReadyError, match="No module named 'hypercorn'"):
        cloud.start(attached=True)
    assert cloud.state() is None


def test_home_that_cannot_be_written_is_one_error_that_names_it(tmp_path, own_pythons):
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "home"

    with pytest.raises(NotReadyError, match=rf"cannot write to {home}: Not a directory. Fix: make"):
        LocalCloud(home).start(attached=True)


def test_disk_without_space_is_one_error(tmp_path, own_pythons, monkeypatch):
    cloud = LocalCloud(tmp_path)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(lifecycle.subprocess, "Popen", full)
    with pytest.raises(NotReadyError, match=r"No space left on device\. Fix: .* free space"):
        cloud.start(attached=True)
    monkeypatch.setattr(api, "assembly_of", full)
    with pytest.raises(NotReadyError, match="assemblies: No space left on device"):
        api._timed_synth(cloud)


def test_no_free_port_is_one_line_and_the_errors_number():
    code = (
        "import errno, os, socket, sys\n"
        "def taken(*_):\n    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))\n"
        "socket.socket.bind = taken\n"
        "from compilegate_localcloud.emulator.__main__ import main\n"
        "sys.argv[1:] = ['--home', '.', '--run-id', 'x', '--job-python', 'x']\nmain()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )

    assert errno.EADDRINUSE == ended.returncode
    assert ended.stderr.startswith("The local cloud cannot listen on 127.0.0.1: ")
    assert 1 == len(ended.stderr.splitlines())


@e2e
def test_second_start_is_refused(cloud):
    with pytest.raises(NotReadyError, match="compilegate local down"):
        LocalCloud(places=cloud.places).start(attached=True)


@e2e
def test_real_credentials_in_the_environment_are_not_used(cloud, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREAL")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://example.invalid")
    session = cloud.running_state().session()

    assert session.get_credentials().access_key == "000000000000"
    assert cloud.client("sts").get_caller_identity()["Account"] == "000000000000"


@e2e
def test_logs_of_every_part_are_files(cloud, trainer, machines, make_function):
    name = trainer.run("print('from the job')")["TrainingJobName"]
    function = make_function("def handler(e, c):\n    print('from the function')\n    return 1\n")
    task = {"Type": "Task", "Resource": function, "End": True}
    execution = machines.run({"StartAt": "T", "States": {"T": task}})
    parts = api.status(cloud).log_parts
    function_name, execution_name = function.rsplit(":", 1)[1], execution["name"]

    assert {
        "emulator",
        f"job/{name}",
        f"lambda/{function_name}",
        f"execution/{execution_name}",
    } <= {*parts}
    assert any(line.endswith("from the job") for line in api.logs(name, cloud=cloud).lines)
    assert any("from the function" in line for line in api.logs(function_name, cloud=cloud).lines)
    history = api.logs(f"execution/{execution_name}", cloud=cloud)
    assert "TaskStateEntered T" in " ".join(history.lines)
    assert len(api.logs("emulator", last=1, cloud=cloud).lines) == 1
