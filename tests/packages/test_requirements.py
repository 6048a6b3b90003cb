"""What the wheels require is what the locks pin, so that neither lacks what the other has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def names(lines: list[str]) -> set[str]:
    return {found.group().lower() for line in lines if (found := NAME.match(line))}


def pinned(file: str) -> list[str]:
    lines = (ROOT / file).read_text().splitlines()
    return [line.partition("#")[0].strip() for line in lines]


def test_a_checkout_installs_what_the_wheel_and_its_extra_for_deploying_require() -> None:
    required = names(PROJECT["dependencies"]) | names(EXTRAS["deploy"])

    # A checkout has the flags in it, and uv as its installer.
    assert names(pinned("requirements.txt")) == required - {"compilegate-flags", "uv"}


def test_the_extra_for_the_embedded_cloud_has_its_libraries_in_the_same_releases() -> None:
    assert {line for line in pinned("requirements/localcloud.in") if line} <= set(EXTRAS["local"])
    assert {line for line in pinned("requirements/toolkit.in") if line} <= set(EXTRAS["local"])


def test_the_extra_for_training_has_what_the_shipped_scripts_import() -> None:
    # Only jobs under MPI import mpi4py, which needs an MPI to be built.
    training = names(pinned("requirements/training.in")) - {"mpi4py"}

    assert training <= names(EXTRAS["local"])
