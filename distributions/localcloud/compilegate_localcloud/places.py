"""Where the parts of a local cloud lie: its folder, the app, the two interpreters."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from compilegate.place import INSTALLED, PROJECT, work_folder
from compilegate_localcloud.errors import NotReadyError
from compilegate_localcloud.names import Home

REPOSITORY = PROJECT
EMULATOR_PYTHON_VARIABLE = "COMPILEGATE_LOCALCLOUD_PYTHON"
TRAINING_PYTHON_VARIABLE = "COMPILEGATE_TRAINING_PYTHON"


@dataclass(frozen=True)
class Places(Home):
    """Paths that a local cloud needs."""

    repository: Path
    emulator_python: Path
    training_python: Path

    @property
    def assemblies(self) -> Path:
        """Synthesised assemblies of the app, see ``assembly_cache``."""
        return work_folder() / "assemblies"


def find_places(home: Path | None = None, repository: Path = REPOSITORY) -> Places:
    """Paths of the app, the two interpreters from their variables if those are set.

    In an installed package both are the interpreter that runs, if it has what they need.
    Raises NotReadyError for an interpreter that is not there.
    """
    return Places(
        repository=repository,
        home=(home or work_folder() / "local").resolve(),
        emulator_python=(
            _interpreter(repository, ".venv-localcloud", EMULATOR_PYTHON_VARIABLE, "ministack")
        ),
        training_python=_with_toolkit(
            _interpreter(repository, ".venv-training", TRAINING_PYTHON_VARIABLE, "torch")
        ),
    )


def _interpreter(repository: Path, environment: str, variable: str, needed: str) -> Path:
    # Not resolved: a virtual environment's python is a link; its own path names the environment.
    if INSTALLED and not os.environ.get(variable):
        if importlib.util.find_spec(needed) is None:
            raise NotReadyError(
                f"The package {needed} is not installed",
                fix=f"pip install 'compilegate[local]', or point {variable} at a Python that has "
                "it.",
            )
        return Path(sys.executable)
    path = Path(os.environ.get(variable) or repository / environment / "bin" / "python")
    if not path.exists():
        raise NotReadyError(
            f"{path} is missing",
            fix=f"run `make setup`, or point {variable} at a Python that has the packages of "
            f"{environment}.",
        )
    return path.absolute()


def _with_toolkit(training_python: Path) -> Path:
    """A Python that somebody names for the jobs starts them by the container toolkit's command."""
    if os.environ.get(TRAINING_PYTHON_VARIABLE) and not training_python.with_name("train").exists():
        raise NotReadyError(
            f"{training_python}, which {TRAINING_PYTHON_VARIABLE} names, has no container toolkit",
            fix="install compilegate[local] there, which brings sagemaker-pytorch-training, or "
            f"unset {TRAINING_PYTHON_VARIABLE}.",
        )
    return training_python
