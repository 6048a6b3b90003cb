"""What the runtime does where a launcher started several processes; no launcher is started here."""

import os
import subprocess
import sys

import pytest
from compilegate_runtime import environment
from compilegate_runtime.speed_gate import rendezvous

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
    found = [rendezvous(variables, place) for place in (0, 9)]

    assert expected == [[segment.get(key) for key in KEYS] for segment in found]


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


@pytest.mark.parametrize("value", ["none", ""])
def test_a_job_without_checkpoints_has_no_folder_for_them(value, monkeypatch, tmp_path):
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", value)

    assert environment.checkpoint_folder() is None


def test_a_job_with_checkpoints_has_the_folder_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", str(tmp_path))

    assert tmp_path.resolve() == environment.checkpoint_folder()
