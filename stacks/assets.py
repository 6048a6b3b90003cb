"""Lays out the folder that every Lambda is made of; an allow-list, so that nothing else slips in.

Contents depend on files alone: no times, no modes of this machine, no compiled bytecode.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.place import INSTALLED, PACKAGE, PROJECT, work_folder

PACKAGES = Path("build") / "lambda-packages"
LOCK = Path("requirements") / "lambdas.lock"
RUNTIME_PYTHON = "3.12"
SOURCES = (
    "compilegate/__init__.py",
    "compilegate/place.py",
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


def stage_bundle(target: Path, repository: Path = PROJECT) -> Path:
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
        root = PACKAGE.parent if INSTALLED and name.startswith("compilegate/") else repository
        for path in _below(root / name):
            yield path, path.relative_to(root)
    packages = _packages(repository)
    for path in _below(packages):
        place = path.relative_to(packages)
        if place.parts[0] != "bin" and not place.parts[0].endswith(".dist-info"):
            yield path, place


def _packages(repository: Path) -> Path:
    """The folder of the packages that the functions need beside the runtime's own."""
    if INSTALLED:
        return _fetched(repository / LOCK)
    packages = repository / PACKAGES
    if not packages.is_dir():
        raise EnvironmentNotReadyError(
            f"the Lambdas' packages are missing ({packages})", fix="run `make setup`"
        )
    return packages


def _fetched(lock: Path) -> Path:
    """The lock's packages for the functions' platform, installed once, as the Makefile does it."""
    packages = work_folder() / f"lambda-packages-{hashlib.sha256(lock.read_bytes()).hexdigest()}"
    if packages.is_dir():
        return packages
    packages.parent.mkdir(parents=True, exist_ok=True)
    # Made beside and renamed, so that no half of it is ever used.
    with tempfile.TemporaryDirectory(dir=packages.parent, prefix=".new-") as folder:
        target = Path(folder) / packages.name
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(target),
                   "--python-platform", "x86_64-manylinux2014", "--python-version", RUNTIME_PYTHON,
                   "--only-binary", ":all:", "--require-hashes", "-r", str(lock)]  # fmt: skip
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
        if ended.returncode:
            raise EnvironmentNotReadyError(
                f"the Lambdas' packages cannot be installed: {ended.stderr.strip()}",
                fix="pip install 'compilegate[deploy]', and let it reach the package registry",
            )
        # Another process may have made the same one meanwhile.
        with contextlib.suppress(OSError):
            target.rename(packages)
    return packages


def _below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for entry in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in entry.relative_to(path).parts)
        if entry.is_file() and "__pycache__" not in entry.parts and not hidden:
            yield entry
