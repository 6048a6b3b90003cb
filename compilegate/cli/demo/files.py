"""The demos' own workloads, their code and their data, where they may be written."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from compilegate import __version__
from compilegate.place import INSTALLED, PROJECT, work_folder

# An installed package is not written to: the demos run in a copy.
FOLDER = work_folder() / f"demo-{__version__}" if INSTALLED else PROJECT
WORKLOADS = FOLDER / "workloads"


def put_in_place() -> None:
    """Copy what the demos need, once."""
    if FOLDER.is_dir():
        return
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    # Made beside and renamed: another demo may begin now.
    with tempfile.TemporaryDirectory(dir=FOLDER.parent, prefix=".new-") as place:
        copy = Path(place) / FOLDER.name
        for name in ("training", "workloads"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
        with contextlib.suppress(OSError):
            copy.rename(FOLDER)
