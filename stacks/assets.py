"""Lays out the folder that every Lambda is made of; an allow-list, so that nothing else slips in.

Contents depend on files alone: no times, no modes of this machine, no compiled bytecode.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = Path("build") / "lambda-packages"
SOURCES = (
    "compilegate/__init__.py",
    "compilegate/ports.py",
    "compilegate/adapters",
    "compilegate/domain",
    "compilegate/facts",
    "compilegate/report",
    "compilegate/usecases",
    "lambdas",
)
# Modes of the machine that builds are not part of the function.
FILE_MODE = 0o644
FOLDER_MODE = 0o755


def stage_bundle(target: Path, repository: Path = REPOSITORY) -> Path:
    """Fill ``target`` with the Lambda bundle; raises EnvironmentNotReadyError with the fix."""
    for source, place in _files(repository):
        destination = target / place
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, destination)
        destination.chmod(FILE_MODE)
    for folder in target.rglob("*/"):
        folder.chmod(FOLDER_MODE)
    return target


def _files(repository: Path) -> Iterator[tuple[Path, Path]]:
    """(source, place in the bundle), sources first so that nothing third-party shadows them."""
    for name in SOURCES:
        for path in _below(repository / name):
            yield path, path.relative_to(repository)
    packages = repository / PACKAGES
    if not packages.is_dir():
        raise EnvironmentNotReadyError(
            f"the Lambdas' packages are missing ({packages}). Fix: run `make setup`"
        )
    for path in _below(packages):
        place = path.relative_to(packages)
        if place.parts[0] != "bin" and not place.parts[0].endswith(".dist-info"):
            yield path, place


def _below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for entry in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in entry.relative_to(path).parts)
        if entry.is_file() and "__pycache__" not in entry.parts and not hidden:
            yield entry
