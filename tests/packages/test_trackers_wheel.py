"""``pip install compilegate-trackers``: the command finds the trackers, each with its own extra."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilegate import __version__
from tests.packages.conftest import environment, succeeded

pytestmark = pytest.mark.slow
# What the command does with its entry points, and what a tracker says without its client.
FOUND = """
from importlib.metadata import entry_points, requires
from compilegate.cli.report import TRACKERS, Target
for one in sorted(entry_points(group=TRACKERS)):
    try:
        one.load()([], None)
    except Exception as error:
        print(Target(one.name), type(error).__name__, error)
print([one for one in requires("compilegate-trackers") if "extra" not in one])
"""


def test_the_command_finds_each_tracker(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", "3.11", wheels, "compilegate-trackers")

    mlflow, wandb, required = succeeded(python, "-c", FOUND, folder=tmp_path).splitlines()

    assert mlflow.startswith("mlflow EnvironmentNotReadyError")
    assert wandb.startswith("wandb EnvironmentNotReadyError")
    assert f"['compilegate=={__version__}']" == required
