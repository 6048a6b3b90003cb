"""The documents tell the truth about what is there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from compilegate.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
TRACKED = subprocess.run(
    ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split("\0")


def commands(
    group: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_and_shows_an_example(name: str) -> None:
    assert f"compilegate {name}" in (ROOT / "docs" / "commands.md").read_text()
    assert f"compilegate {name}" in (COMMANDS[name].help or "")


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {"diff", "deploy", "destroy"}
    for page in PAGES:
        for named in re.findall(r"(?:^\$ |`)make ([a-z-]+)", page.read_text(), re.MULTILINE):
            assert named in targets, f"{page.name}: make {named}"


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for page in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert page.name in index


def test_no_file_names_a_package_registrys_host() -> None:
    host = re.compile(r"https?://[a-z0-9.-]*(pypi|pythonhosted|npmjs|debian)\.")
    for name in filter(None, TRACKED):
        path = ROOT / name
        if path.is_file() and path.suffix != ".png":
            assert not host.search(path.read_text(errors="ignore")), name
