"""What the runtime does where a launcher started several processes; no process is started here."""

import pytest
from compilegate_runtime import environment
from compilegate_runtime.speed_gate import rendezvous

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


@pytest.mark.parametrize("value", ["none", ""])
def test_a_job_without_checkpoints_has_no_folder_for_them(value, monkeypatch, tmp_path):
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", value)

    assert environment.checkpoint_folder() is None


def test_a_job_with_checkpoints_has_the_folder_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPILEGATE_CHECKPOINT_DIR", str(tmp_path))

    assert tmp_path.resolve() == environment.checkpoint_folder()
