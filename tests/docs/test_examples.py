"""The evidence that users can try, and what the pages show of it, are as the judge is today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compilegate.cli.main import app
from tests.docs.examples import DOCUMENTS, EXAMPLES, PAGES, refreshed, text

HINT = "write it anew: python -m tests.docs.examples"
SHOWN = {"evidence.json": ("promote", 0), "probation.json": ("revert", 12)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_example_is_what_its_builder_makes_and_small(name: str) -> None:
    file = EXAMPLES / name

    assert text(DOCUMENTS[name]()) == file.read_text(), HINT
    assert file.stat().st_size < 60_000


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_example_ends_as_the_pages_say(name: str) -> None:
    result = CliRunner().invoke(app, ["judge", str(EXAMPLES / name), "--json"])

    assert SHOWN[name] == (json.loads(result.stdout)["verdict"], result.exit_code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_the_command_prints(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGES[0].parent)

    assert refreshed(page.read_text()) == page.read_text(), HINT
