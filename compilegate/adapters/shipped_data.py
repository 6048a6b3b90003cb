"""The data of the shipped workloads, which a script of theirs writes."""

from __future__ import annotations

import sys
from pathlib import Path

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
