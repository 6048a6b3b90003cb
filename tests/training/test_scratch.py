"""Temporary folders of the runtime: a killed process's go with the next start, no other's do."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "training"
HOLD = """
import subprocess, sys, time
from compilegate_runtime.launching import arguments
words = ["--script", sys.argv[1], "--script_kind", "trainer", "--seed", "1", *sys.argv[3:]]
passed = arguments.script_words(*arguments.parse(words))
folder = passed[passed.index("--output_dir") + 1]
open(folder + "/weights", "w").write("x")
print(folder, flush=True)
time.sleep(float(sys.argv[2]))
"""

SEGMENT, WHOLE = ("--max_steps", "5"), ("--precision", "fp32")


def names(folder):
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def start(tmp_path):
    """Start a segment's or another process that lives so many seconds; its folder and it."""
    script = tmp_path / "train.py"
    script.write_text("")
    own = tmp_path / "tmp"
    own.mkdir()
    started = []

    def begin(seconds, *words):
        environment = {**os.environ, "PYTHONPATH": str(TRAINING), "TMPDIR": str(own)}
        environment.pop("SM_MODEL_DIR", None)
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(script), str(seconds), *(words or SEGMENT)],
            env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return Path(process.stdout.readline().strip()), process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_killed_processes_folder_goes_with_the_next_start_and_a_living_ones_stays(start):
    living, _ = start(60)
    killed, process = start(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = killed.exists()
    newest, _ = start(60)

    assert (True, False, False) == (left, killed.exists(), killed.parent.exists())
    assert [["weights"]] * 2 == [names(one) for one in (living, newest)]


def test_a_whole_run_outside_of_a_job_leaves_its_model_unless_it_is_killed(start):
    living, _ = start(60, *WHOLE)
    ended, process = start(0, *WHOLE)
    process.wait()
    killed, process = start(60, *WHOLE)
    process.kill()
    process.wait()
    left = killed.exists()
    start(60)

    assert (True, False) == (left, killed.exists())
    assert [["weights"]] * 2 == [names(one) for one in (living, ended)]
    assert "compilegate-scratch-model-" in str(killed)


def test_what_only_looks_like_such_a_folder_stays(start, tmp_path):
    """No lock in it, or a link to somebody's own."""
    killed, process = start(60)
    process.kill()
    process.wait()
    mine = tmp_path / "mine"
    shutil.copytree(killed.parent, mine)
    bare = killed.parent.with_name("compilegate-scratch-segment-bare")
    bare.mkdir()
    (bare.parent / "compilegate-scratch-segment-link").symlink_to(mine)
    start(60)

    assert (True, ["content", "lock"], False) == (
        bare.exists(),
        sorted(names(mine)),
        killed.exists(),
    )


def test_a_folder_that_is_held_goes_with_its_context(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    from compilegate_runtime import scratch  # noqa: PLC0415 - conftest.py sets up the path

    with scratch.held("gate") as own:
        scratch.sweep()
        assert ([], True) == (names(own), own.exists())

    assert [] == names(tmp_path)
