"""CONTRIBUTING.md names files, folders and modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
CODE = re.findall(r"`([^`\n]+)`", PAGE)
TOP = {path.name for path in ROOT.iterdir()}
PATHS = sorted({text for text in CODE if text.split("/")[0] in TOP and " " not in text})
MODULES = sorted(set(re.findall(r"`python -m ([\w.]+)`", PAGE)))


def test_the_page_names_paths_and_modules() -> None:
    assert len(PATHS) > 40
    assert MODULES


@pytest.mark.parametrize("path", PATHS)
def test_every_path_exists(path: str) -> None:
    """NAME stands for what is added: others like it are there."""
    assert list(ROOT.glob(path.replace("NAME", "*").rstrip("/"))), f"{path}: name what replaced it"


@pytest.mark.parametrize("module", MODULES)
def test_every_module_exists(module: str) -> None:
    assert (ROOT / f"{module.replace('.', '/')}.py").exists()
