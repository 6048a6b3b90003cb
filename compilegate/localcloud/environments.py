"""Where the local cloud's parts lie: repository, interpreters, working files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from compilegate.localcloud.errors import NotReadyError

REPOSITORY = Path(__file__).resolve().parents[2]
DEFAULT_HOME = Path(".compilegate") / "local"
EMULATOR_PYTHON_VARIABLE = "COMPILEGATE_LOCALCLOUD_PYTHON"
TRAINING_PYTHON_VARIABLE = "COMPILEGATE_TRAINING_PYTHON"


@dataclass(frozen=True)
class Places:
    """Paths that a local cloud needs; ``home`` holds everything it writes."""

    repository: Path
    home: Path
    emulator_python: Path
    training_python: Path

    @property
    def state_file(self) -> Path:
        """Written by the emulator while it serves."""
        return self.home / "state.json"

    @property
    def logs(self) -> Path:
        """Logs of the last run; see ``emulator/log_files.py``."""
        return self.home / "logs"

    @property
    def assemblies(self) -> Path:
        """Synthesised assemblies of the checkout, see ``assembly_cache``."""
        return self.repository / ".compilegate" / "assemblies"

    @property
    def work(self) -> Path:
        """Working files of a run; gone after it."""
        return self.home / "work"


def find_places(home: Path | None = None, repository: Path = REPOSITORY) -> Places:
    """Paths of the checkout, the two interpreters from their variables if those are set.

    Raises NotReadyError for an interpreter that is not there.
    """
    return Places(
        repository=repository,
        home=(home or repository / DEFAULT_HOME).resolve(),
        emulator_python=_interpreter(repository, ".venv-localcloud", EMULATOR_PYTHON_VARIABLE),
        training_python=_interpreter(repository, ".venv-training", TRAINING_PYTHON_VARIABLE),
    )


def _interpreter(repository: Path, environment: str, variable: str) -> Path:
    # Not resolved: a virtual environment's python is a link; its own path names the environment.
    path = Path(os.environ.get(variable) or repository / environment / "bin" / "python")
    if not path.exists():
        raise NotReadyError(
            f"{path} is missing. Fix: run `make setup`, or point {variable} at a Python that has "
            f"the packages of {environment}."
        )
    return path.absolute()
