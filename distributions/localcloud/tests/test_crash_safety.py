"""Whatever dies, nothing of the local cloud is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compilegate_localcloud.connection import read_state
from compilegate_localcloud.errors import NotReadyError
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY
from distributions.localcloud.tests.conftest import FAST, make_places
from distributions.localcloud.tests.failures import Failure, inject
from distributions.localcloud.tests.helpers import (
    APP,
    ROLE,
    Trainer,
    alive,
    eventually,
    function_bundle,
    marked_processes,
    wait_for_none,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc"),
]

# A job with a child that leaves its process group and one that leaves its environment as well, and
# a function that takes long.
JOB = (
    "import os, subprocess, sys, time\n"
    "sleep = [sys.executable, '-c', 'import time; time.sleep(99)']\n"
    "subprocess.Popen(sleep, start_new_session=True)\n"
    "run = os.environ['COMPILEGATE_LOCAL_RUN']\n"
    "subprocess.Popen([*sleep, run], start_new_session=True, env={})\n"
    "print('up', flush=True)\ntime.sleep(99)\n"
)
SLOW_FUNCTION = "import time\ndef handler(event, context):\n    time.sleep(99)\n"
# Emulator, template of the SDK, of the app, worker of the function, fork server and its child,
# supervisor, toolkit, script, runaway children.
PROCESSES = 11
# A command that starts an attached cloud and then hangs.
COMMAND = """
import sys, time
from pathlib import Path
from distributions.localcloud.tests.conftest import FAST, make_places
from compilegate_localcloud.lifecycle import LocalCloud
with LocalCloud(places=make_places(Path(sys.argv[1]))) as cloud:
    cloud.start(attached=True, extra_arguments=FAST)
    print("serving", flush=True)
    time.sleep(99)
"""


def keep_busy(cloud):
    """Every kind of process that a run can have."""
    state = cloud.state()
    trainer = Trainer(cloud.client)
    trainer.wait_until_training(trainer.start(JOB))
    functions = cloud.client("lambda")
    functions.create_function(
        FunctionName="slow",
        Runtime="python3.12",
        Handler="index.handler",
        Role=ROLE,
        Code={"ZipFile": function_bundle(SLOW_FUNCTION, APP)},
        Timeout=300,
    )
    functions.invoke(FunctionName="slow", InvocationType="Event")
    eventually(
        lambda: len(marked_processes(state.run_id)) >= PROCESSES, 10, "processes are missing"
    )
    return state


@pytest.fixture
def detached(tmp_path):
    cloud = LocalCloud(places=make_places(tmp_path))
    cloud.start(attached=False, extra_arguments=FAST)
    yield cloud
    cloud.stop()


@pytest.fixture
def command(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "serving\n"
    yield process, LocalCloud(places=make_places(tmp_path))
    process.kill()
    process.wait()


def test_killed_emulator_leaves_no_process_and_the_next_command_removes_its_files(detached):
    state = keep_busy(detached)
    os.kill(state.pid, signal.SIGKILL)

    assert wait_for_none(state.run_id) == []
    assert detached.places.state_file.exists()
    assert detached.state() is None
    assert not detached.places.state_file.exists()
    assert not detached.places.work.exists()


def test_command_that_dies_takes_its_local_cloud_with_it(command):
    process, cloud = command
    state = keep_busy(cloud)
    process.kill()

    assert wait_for_none(state.run_id) == []
    assert not cloud.places.work.exists()
    assert not cloud.places.journal.exists()
    assert read_state(cloud.places.state_file) is None


def test_stop_ends_everything_a_detached_cloud_started(detached):
    state = keep_busy(detached)
    with pytest.raises(NotReadyError, match="not started with failure injection"):
        inject(state, Failure.THROTTLED)

    assert detached.stop() is True
    assert marked_processes(state.run_id) == []
    assert not detached.places.work.exists()
    assert detached.stop() is False


def of_process(pid, what):
    """What the system says of a process; nothing of one that has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def test_killed_supervisor_does_not_let_its_job_run_on(cloud, trainer):
    name = trainer.start("import time\nprint('up', flush=True)\ntime.sleep(99)")
    trainer.wait_until_training(name)
    time.sleep(0.3)
    own = f"COMPILEGATE_LOCAL_JOB={name}".encode()
    marked = marked_processes(cloud.state().run_id)
    processes = [pid for pid in marked if own in of_process(pid, "environ")]
    supervisor = next(pid for pid in processes if b"supervisor.py" in of_process(pid, "cmdline"))
    os.kill(supervisor, signal.SIGKILL)
    job = trainer.wait(name)

    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].endswith("exit code: 137")
    assert [pid for pid in processes if alive(pid)] == []


def test_other_process_with_the_old_id_is_not_mistaken_for_the_emulator(cloud, tmp_path):
    """Process ids are used again."""
    state = cloud.places.state_file.read_text()
    own = state.replace(f'"pid": {cloud.state().pid}', f'"pid": {os.getpid()}')
    (tmp_path / "state.json").write_text(own)
    stale = LocalCloud(places=make_places(tmp_path))

    assert stale.state() is None
    assert stale.stop() is False
    assert alive(os.getpid())
