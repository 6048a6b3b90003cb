"""The tutorial's commands exist and went as the page says. tests/training trains its script."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import typer

from compilegate.cli.main import app
from tools.docs.tutorial import PAGE, RECORDED, parts


def test_every_command_is_one_of_today_s():
    page = [text for kind, text in parts(PAGE.read_text()) if kind == "console"]
    called = re.findall(r"compilegate ([^|>;`\n]+)", "\n".join(page))

    assert len(called) > 10
    for words in called:
        parse(shlex.split(words))


def parse(words: list[str]) -> None:
    """Raises for a command, option or argument that there is not."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        name, *words = words
        command = command.get_command(None, name)
        assert command, name
    command.make_context(name, list(words))


def test_the_recorded_run_went_as_the_page_says():
    """Worth a trial by what was seen, turned on by it, turned off by production."""
    done = json.loads(RECORDED.read_text())["commands"]
    printed = {one["command"]: one for one in done}
    (trial,) = (one for name, one in printed.items() if " run forecast.yaml" in name)
    (broken,) = (one for name, one in printed.items() if name.startswith("while"))
    (changes,) = (one for name, one in printed.items() if "flag history" in name)

    assert "turn it on (promote)" in trial["output"]
    assert "flag off (reverted)" in " ".join(broken["output"].split())
    assert ["off (reverted)", "on (probation)"] == re.findall(
        r"-> (o\w+ \(\w+\))", changes["output"]
    )
    unsuccessful = {one["command"]: one["exit_code"] for one in done if one["exit_code"]}
    assert {"compilegate check forecast.yaml": 11} == unsuccessful  # to measure
    assert "Your run of 28.8 s on this machine" in " ".join(done[0]["output"].split())
