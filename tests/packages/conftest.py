"""Wheels of this checkout, and clean environments to install them in."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = ROOT / "distributions"
SECONDS = 300
# What the shell of a developer may hold and a user's does not.
FOREIGN = ("PYTHON", "VIRTUAL_ENV", "COMPILEGATE_", "AWS_", "UV_PROJECT")


def run(*command: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command as a user would run it: outside the checkout, with nothing of it to import."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(FOREIGN)}
    return subprocess.run(
        list(map(str, command)), cwd=folder, env={**kept, **variables}, text=True, check=False,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS,
    )  # fmt: skip


def succeeded(*command: str | Path, folder: Path, **variables: str) -> str:
    """Its standard output; fails with its errors."""
    ended = run(*command, folder=folder, **variables)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def uv(*arguments: str | Path) -> str:
    return succeeded(sys.executable, "-m", "uv", *arguments, folder=ROOT)


def interpreter(version: str) -> str:
    """A Python of that version here; skips the test where there is none."""
    # pyenv puts a name for every version on the path and answers for the chosen one alone.
    asked = run(sys.executable, "-m", "uv", "python", "find", "--no-project", version,
                folder=ROOT, PYENV_VERSION=version)  # fmt: skip
    if asked.returncode:
        pytest.skip(f"there is no Python {version} here")
    return asked.stdout.strip()


def environment(
    place: Path,
    python: str,
    wheels: Path,
    requirement: str,
    *,
    constraint: Path = ROOT / "requirements" / "tool.lock",
    before: Callable[[], None] = lambda: None,
) -> Path:
    """The interpreter of a new environment with a requirement, of which ``wheels`` has our part.

    ``before`` puts into the empty environment what is not to be installed.
    """
    uv("venv", "--quiet", "--python", python, place)
    before()
    install(place, wheels, requirement, "--constraint", constraint)
    link_bytecode(place)
    return place / "bin" / "python"


def packages(place: Path) -> Path:
    return next(place.glob("lib/python3*/site-packages"))


def link_bytecode(place: Path) -> None:
    """What the checkout's environments have compiled of the very same files."""
    new = packages(place)
    for name in (".venv", ".venv-localcloud", ".venv-training"):
        source = packages(ROOT / name)
        for package in filter(Path.is_dir, new.iterdir()):
            for file in (source / package.name).rglob("__pycache__/*.pyc"):
                module = (file.parents[1] / file.name.partition(".")[0]).with_suffix(".py")
                linked, copy = new / file.relative_to(source), new / module.relative_to(source)
                if copy.exists() and copy.samefile(module) and not linked.exists():
                    linked.parent.mkdir(exist_ok=True)
                    linked.hardlink_to(file)


def install(python: Path, wheels: Path, requirement: str, *options: str | Path) -> None:
    # uv knows a wheel of a folder by its name: one that was built again would not be read again.
    ours = [f"--refresh-package={one.name.partition('-')[0]}" for one in wheels.glob("*.whl")]
    uv("pip", "install", "--quiet", "--python", python, "--find-links", wheels, *ours, *options,
       requirement)  # fmt: skip
    uv("pip", "check", "--python", python)


def files_of(wheel: Path) -> set[str]:
    """What it installs, without what describes it."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def build(project: Path, folder: Path) -> None:
    uv("build", "--wheel", "--quiet", "--no-build-isolation", "--python", sys.executable,
       "--out-dir", folder, project)  # fmt: skip


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of each distribution: a release's, else those of the checkout."""
    if release := os.environ.get("COMPILEGATE_RELEASE"):
        return ROOT / release
    folder = tmp_path_factory.mktemp("wheels")
    for project in (ROOT, *(path.parent for path in DISTRIBUTIONS.glob("*/pyproject.toml"))):
        build(project, folder)
    return folder


def wheel(wheels: Path, name: str) -> Path:
    (only,) = wheels.glob(f"{name}-*.whl")
    return only
