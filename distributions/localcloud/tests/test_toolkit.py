"""How the embedded cloud runs AWS's container toolkit beside other jobs on one machine."""

import os
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest

from compilegate_localcloud.emulator.sagemaker.container import missing_launchers
from distributions.localcloud.tests.helpers import marked_processes

e2e = pytest.mark.e2e
ROOT = Path(sys.prefix)


def wheel(folder):
    """A package that no environment has, as a wheel."""
    path = folder / "only_this_job-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: only-this-job\nVersion: 1.0\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("only_this_job.py", "VERSION = '1.0'\n")
        archive.writestr("only_this_job-1.0.dist-info/METADATA", metadata)
        archive.writestr("only_this_job-1.0.dist-info/WHEEL", tags)
        archive.writestr("only_this_job-1.0.dist-info/RECORD", "")
    return folder


@e2e
def test_requirements_are_installed_for_their_job_alone(trainer, tmp_path):
    wanted = f"--no-index\n--find-links {wheel(tmp_path)}\nonly-this-job==1.0\n"
    name = trainer.start(
        "import only_this_job\nprint(f'found {only_this_job.VERSION}')",
        files={"requirements.txt": wanted},
    )
    job = trainer.wait(name, 60)
    other = trainer.run("import only_this_job")

    assert job["TrainingJobStatus"] == "Completed", job["FailureReason"]
    assert "found 1.0" in trainer.log_lines(name)
    assert other["TrainingJobStatus"] == "Failed"
    assert not list(ROOT.rglob("only_this_job*"))


@e2e
def test_a_setup_py_makes_the_toolkit_start_a_module_instead_of_the_program(trainer):
    """Why a source folder with one is refused."""
    files = {
        "setup.py": "from setuptools import setup\nsetup(name='team', py_modules=[])\n",
        "compilegate_runtime/speed_gate.py": "print('never')\n",
    }
    program = {"sagemaker_program": '"compilegate_runtime/speed_gate.py"'}
    job = trainer.wait(trainer.start("", files=files, hyperparameters=program), 60)

    assert job["TrainingJobStatus"] == "Failed"
    assert "AlgorithmError" in job["FailureReason"]


@e2e
def test_jobs_go_on_and_new_ones_start_when_the_fork_server_is_killed(trainer, cloud):
    running = trainer.start("import time\nprint('up', flush=True)\ntime.sleep(2)\nprint('end')")
    trainer.wait_for_line(running, "up")
    servers = [pid for pid in marked_processes(cloud.state().run_id) if serves(pid)]
    os.kill(min(servers, key=started), signal.SIGKILL)
    time.sleep(0.2)

    assert trainer.run("print('next')")["TrainingJobStatus"] == "Completed"
    assert trainer.wait(running)["TrainingJobStatus"] == "Completed"


def serves(pid):
    return b"fork_server.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


def started(pid):
    """When the process began, in ticks; the server is older than those it has forked."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


@pytest.mark.parametrize(
    ("asked", "instances", "torchrun", "missing"),
    [
        ({}, 1, True, set()),
        ({"sagemaker_torch_distributed_enabled": "true"}, 1, True, set()),
        ({"sagemaker_torch_distributed_enabled": "true"}, 1, False, {"torchrun"}),
        ({"sagemaker_torch_distributed_enabled": "true"}, 2, True, {"torchrun"}),
        ({"sagemaker_mpi_enabled": "true"}, 1, True, {"MPI"}),
        ({"sagemaker_mpi_enabled": "false"}, 1, True, set()),
    ],
)
def test_launchers_that_need_more_than_this_machine(asked, instances, torchrun, missing):
    assert missing == {*missing_launchers(asked, instances=instances, torchrun=torchrun).values()}
