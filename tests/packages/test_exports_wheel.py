"""``pip install compilegate-exports``: the command is there; each tracker needs its own extra."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilegate import __version__
from tests.packages.conftest import environment, succeeded

pytestmark = pytest.mark.slow
# What a tracker says without its client, and what the wheel requires without an extra.
SAYS = """
from importlib.metadata import requires
from compilegate_exports.command import TRACKERS
for name, write_runs in TRACKERS.items():
    try:
        write_runs([], None)
    except Exception as error:
        print(name, type(error).__name__, error)
print([one for one in requires("compilegate-exports") if "extra" not in one])
"""


def test_without_an_extra_each_tracker_says_what_it_needs(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", "3.11", wheels, "compilegate-exports")

    mlflow, wandb, required = succeeded(python, "-c", SAYS, folder=tmp_path).splitlines()

    assert mlflow.startswith("mlflow EnvironmentNotReadyError")
    assert wandb.startswith("wandb EnvironmentNotReadyError")
    assert f"['compilegate=={__version__}']" == required
    assert "--to" in succeeded(python.with_name("compilegate"), "export", "--help", folder=tmp_path)
