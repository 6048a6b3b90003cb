"""What the runtime does where a launcher started several processes; no launcher is started here."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest
from compilegate_runtime import environment, mpi_segments
from compilegate_runtime.errors import TrainingError
from compilegate_runtime.segments import follow, rendezvous, why_it_failed

from tests.training.jobs import TRAINING

TORCHRUN = {"TORCHELASTIC_USE_AGENT_STORE": "True", "WORLD_SIZE": "2"}
MPI = {"OMPI_COMM_WORLD_SIZE": "2"}
KEYS = ("MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"MASTER_PORT": "7777"}, [[None, None]] * 2),
        ({"MASTER_PORT": "7777", "OMPI_COMM_WORLD_SIZE": "1"}, [[None, None]] * 2),
        ({**TORCHRUN, "MASTER_PORT": "7777"}, [["7778", "False"], ["7787", "False"]]),
        ({**MPI, "MASTER_PORT": "7777"}, [["7778", None], ["7787", None]]),
        (MPI, [["29501", None], ["29510", None]]),
        ({**MPI, "MASTER_PORT": "65530"}, [["65531", None], ["1028", None]]),
    ],
)
def test_each_segment_of_several_processes_has_a_port_of_its_own(variables, expected):
    own = [rendezvous(variables, place) for place in (0, 9)]

    assert expected == [[segment.get(key) for key in KEYS] for segment in own]


SPEAKERS = {
    "gate": "from compilegate_runtime.speed_gate import say; say('loss=1.5', arm='a', block=0)",
    "segment": "from compilegate_runtime.progress import Progress; "
    "Progress(float, silent=False).say('compilegate arm=a block=0 loss=1.5')",
}


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="needs a pipe that keeps writes apart")
@pytest.mark.parametrize("speaker", SPEAKERS)
def test_a_progress_line_is_one_write_so_that_mpirun_tags_it_once(speaker):
    read, write = os.pipe2(os.O_DIRECT)  # each write comes out by itself, as mpirun reads it
    variables = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-c", SPEAKERS[speaker]]
    subprocess.run(words, cwd=TRAINING, env=variables, stdout=write, check=True)
    os.close(write)
    with os.fdopen(read, "rb", buffering=0) as pipe:
        first = pipe.read(1000)

    assert b"compilegate arm=a block=0 loss=1.5\n" == first


@pytest.mark.parametrize(("value", "named"), [("none", False), ("", False), ("kept", True)])
def test_a_jobs_checkpoints_have_the_folder_that_is_named_or_none(
    value, named, monkeypatch, tmp_path
):
    for name in ("none", "kept"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", value)

    assert ((tmp_path / value).resolve() if named else None) == environment.checkpoint_folder()


@pytest.fixture
def meeting(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")


def test_the_other_processes_wait_for_the_firsts_segments(meeting):
    others = [threading.Thread(target=mpi_segments.wait_for_first_process) for _ in range(2)]
    for other in others:
        other.start()

    with mpi_segments.first_process(3):
        assert all(other.is_alive() for other in others)

    for other in others:
        other.join(timeout=10)
    assert not any(other.is_alive() for other in others)


def test_a_process_that_never_comes_is_not_waited_for_without_end(meeting, monkeypatch):
    monkeypatch.setattr(mpi_segments, "MEET_SECONDS", 0.05)

    with (
        pytest.raises(TrainingError, match="1 of 2 processes of the speed job started"),
        mpi_segments.first_process(2),
    ):
        pytest.fail("its segments must not start")
    with pytest.raises(TrainingError, match="the job's first process"):
        mpi_segments.wait_for_first_process()


CHILD = """
import json, os
from compilegate_runtime.mpi_segments import Mpirun
os.environ["STARTED_WITH"] = "something later"
starter = Mpirun("compilegate_runtime/speed_gate.py")
command = starter.command("train.py", ["--steps", "3"], {"MASTER_PORT": "7779"})
print(json.dumps([command, starter.variables["STARTED_WITH"]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its parents in /proc")
def test_a_segment_starts_as_mpirun_started_the_job(tmp_path):
    mpirun = tmp_path / "mpirun.real"  # any process of that name will do
    mpirun.symlink_to(sys.executable)
    script = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {CHILD!r}], check=True)"
    command_line = [str(mpirun), "-c", script, "compilegate_runtime/speed_gate.py", "--blocks", "2"]

    done = subprocess.run(
        command_line, cwd=TRAINING, env={"STARTED_WITH": "this"}, stdout=subprocess.PIPE, check=True
    )

    command, variable = json.loads(done.stdout)
    started = [command_line[0], "-x", "MASTER_PORT", *command_line[1:3], "train.py"]
    assert [*started, "--steps", "3"] == command
    assert "this" == variable


def test_segments_under_mpi_are_refused_where_no_mpirun_started_the_job():
    with pytest.raises(TrainingError, match="not by an mpirun that runs beside the first"):
        mpi_segments.Mpirun("compilegate_runtime/speed_gate.py")


def test_lines_of_the_own_mpirun_count_as_progress(tmp_path):
    printed = "[1,0]<stdout>:compilegate step=1\n[1,1]<stderr>:compilegate failed: no disk\nother"
    script = f"import sys; print({printed!r}); sys.exit(3)"
    progress = []

    status, lines = follow([sys.executable, "-c", script], os.environ, tmp_path, progress.append)

    assert (3, ["step=1"]) == (status, progress)
    assert "no disk" == why_it_failed(status, lines)


def test_a_segment_that_was_killed_says_by_what(tmp_path):
    script = "import os; print('so far', flush=True); os.kill(os.getpid(), 9)"

    status, lines = follow([sys.executable, "-c", script], os.environ, tmp_path, print)

    assert "it was ended by SIGKILL | so far" == why_it_failed(status, lines)


LEAVES = """
import json, sys
from torch import distributed
from compilegate_runtime.ranks import leave_process_group

distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
leave_process_group()
leave_process_group()  # a script may have ended its group itself
print(json.dumps(distributed.is_initialized()))
"""


@pytest.mark.training
def test_a_group_that_the_script_left_open_is_ended(jobs, tmp_path):
    assert jobs.run_code(LEAVES, str(tmp_path / "store")) is False
