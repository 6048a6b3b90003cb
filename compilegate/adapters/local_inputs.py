"""Data on this disk; that of the shipped workloads is written by a script of theirs."""

from __future__ import annotations

import sys
from pathlib import Path

from compilegate.domain.errors import InvalidInputError
from compilegate.place import INSTALLED, PROJECT

SCRIPT = Path("training") / "prepare_data.py"
FOLDER = Path("workloads") / "data"
# What the script writes below FOLDER.
SETS = ("docstrings", "table", "pictures")
COPY = "compilegate-examples"
PYTHON = Path(".venv-training") / "bin" / "python"


def preparing_command(place: Path, project: Path) -> str | None:
    """The shell command that writes the missing ``place``; None where no script of ours does."""
    made = any(place.is_relative_to(project / FOLDER / name) for name in SETS)
    if not made or not (project / SCRIPT).is_file():
        return None
    if INSTALLED:  # never into the package
        steps = [f"cp -r {project} {COPY}", f"cd {COPY}"] if project == PROJECT else []
        return " && ".join([*steps, f"{sys.executable} {SCRIPT} {FOLDER}"])
    steps = [] if project == Path.cwd() else [f"cd {project}"]
    if not (project / PYTHON).exists():
        steps.append("make setup")
    return " && ".join([*steps, f"{PYTHON} {SCRIPT} {FOLDER}"])


def read_input(channel: str, location: str, project: Path) -> Path:
    """A file or folder of the project; data may lie elsewhere behind a link that the team set."""
    field = f"training.inputs.{channel}"
    place = project / location
    if not place.exists():
        command = preparing_command(place, project)
        fix = f"write the data with `{command}`" if command else "create it, or write an s3:// URI"
        raise InvalidInputError(
            f"does not exist; looked at {place}", field=field, value=location, fix=fix
        )
    if place.is_dir() and not any(path.is_file() for path in place.rglob("*")):
        raise InvalidInputError(
            "is an empty folder", field=field, value=location, fix="put the data in it"
        )
    return place
