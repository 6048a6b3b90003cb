"""What the wheels require is what the locks pin, so that neither lacks what the other has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from compilegate import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {
    project["name"]: project
    for place in (ROOT, *(ROOT / "distributions").iterdir())
    for project in [tomllib.loads((place / "pyproject.toml").read_text())["project"]]
}
PROJECT, LOCAL_CLOUD = PROJECTS["compilegate"], PROJECTS["compilegate-localcloud"]
EXTRAS = PROJECT["optional-dependencies"]
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def names(lines: list[str]) -> set[str]:
    return {found.group().lower() for line in lines if (found := NAME.match(line))}


def required(project: dict[str, Any]) -> list[str]:
    """By itself and by its extras."""
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    return sum(extras.values(), project.get("dependencies", []))


def pinned(file: str) -> list[str]:
    lines = (ROOT / file).read_text().splitlines()
    return [line.partition("#")[0].strip() for line in lines]


def test_a_checkout_installs_what_the_wheel_and_its_extra_for_deploying_require() -> None:
    ours = names(PROJECT["dependencies"]) | names(EXTRAS["deploy"])

    # A checkout has our own distributions in it, and uv as its installer.
    assert names(pinned("requirements.txt")) == ours - PROJECTS.keys() - {"uv"}


def test_the_embedded_cloud_has_its_libraries_in_the_same_releases() -> None:
    files = ("requirements/localcloud.in", "requirements/toolkit.in")
    libraries = {line for file in files for line in pinned(file) if line}

    assert libraries <= set(LOCAL_CLOUD["dependencies"])


def test_distributions_of_one_release_require_each_other() -> None:
    own = [
        line for project in PROJECTS.values() for line in required(project)
        if names([line]) & PROJECTS.keys()
    ]  # fmt: skip

    assert len(own) > 3
    assert {__version__} == {line.partition("==")[2] for line in own}


def test_the_extra_for_training_has_what_the_shipped_scripts_import() -> None:
    training = names(pinned("requirements/training.in"))

    # It raises RuntimeError where there is no MPI, so that no Lightning script would start.
    assert "mpi4py" not in training | names(pinned("requirements/training.lock"))
    assert training <= names(EXTRAS["local"]) | names(LOCAL_CLOUD["dependencies"])
