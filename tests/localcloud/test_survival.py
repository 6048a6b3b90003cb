"""A command or a cloud that dies while a trial runs leaves nothing that stands in the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilegate.adapters.kept_trials import KeptTrials
from compilegate_localcloud.connection import read_state
from compilegate_localcloud.places import REPOSITORY, TRAINING_PYTHON_VARIABLE
from distributions.localcloud.tests.helpers import eventually, wait_for_none
from tests.e2e.conftest import JOB, trial_document

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.training,
    pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes under /proc"),
]
# The command with a folder of its own for the cloud; the synthesised app is everybody's.
COMMAND = """
import sys
from pathlib import Path
from compilegate_localcloud import places
work = Path(sys.argv[1])
places.work_folder = lambda: work
from compilegate.cli.main import main
sys.argv[:2] = ["compilegate"]
main()
"""
# Its jobs need no PyTorch, which the process that they are forked from would import.
ENVIRONMENT = {
    **os.environ, "PYTHONPATH": str(REPOSITORY), TRAINING_PYTHON_VARIABLE: sys.executable,
}  # fmt: skip
VERDICTS = (0, 10, 11, 13)  # exit codes of a trial that has ended


@dataclass
class Place:
    """A project's folder, with that of the local cloud of its commands in it."""

    folder: Path

    def command(self, *words: str) -> list[str]:
        """The command line of ``compilegate WORDS``."""
        return [sys.executable, "-c", COMMAND, str(self.folder / "work"), *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``compilegate WORDS`` to its end."""
        return subprocess.run(
            self.command(*words), cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
            check=False,
        )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one, assemblies = Place(tmp_path), REPOSITORY / ".compilegate" / "assemblies"
    assemblies.mkdir(parents=True, exist_ok=True)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "assemblies").symlink_to(assemblies)
    shutil.copytree(JOB, tmp_path / "job")
    (tmp_path / "workload.yaml").write_text(json.dumps(trial_document("survivor", speedup=0.9)))
    yield one
    one.run("local", "down")


@pytest.mark.parametrize("dies", ["command", "cloud"])
def test_what_dies_leaves_no_process_and_what_was_recorded(place: Place, dies: str) -> None:
    process = subprocess.Popen(
        place.command("run", "workload.yaml", "--local"), cwd=place.folder, text=True,
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    local = place.folder / "work" / "local"
    eventually(lambda: list(local.glob("work/jobs/*")), 300, "no job trains")
    if dies == "cloud":
        os.kill(read_state(local / "state.json").pid, signal.SIGKILL)
    else:
        process.kill()
    said, _ = process.communicate(timeout=180)

    assert "Traceback" not in said
    assert [] == wait_for_none(str(local), 15)
    for kept in (place.folder / ".compilegate" / "trials").glob("*/records.json"):
        json.loads(kept.read_text(encoding="utf-8"))
    if dies == "cloud":  # the next run goes on with it
        again = place.run("run", "workload.yaml", "--local")
        assert again.returncode in VERDICTS, again.stderr
        assert all(trial.ended for trial in KeptTrials(place.folder).trials)
    else:
        assert 0 == place.run("local", "up").returncode
