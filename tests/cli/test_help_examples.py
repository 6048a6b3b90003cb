"""The workload files that the commands' help names are there to be tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import typer

from compilegate.cli.main import app

ROOT = Path(__file__).parents[2]
OWN = "workloads/my-job.yaml"  # stands for the reader's
FILE = re.compile(r"\bworkloads/[\w-]+\.yaml")


def helps(of: typer.Typer) -> Iterator[str]:
    for command in of.registered_commands:
        yield (command.callback and command.callback.__doc__) or ""
    for group in of.registered_groups:
        if group.typer_instance is not None:
            yield from helps(group.typer_instance)


def test_every_workload_file_in_the_help_exists() -> None:
    named = {file for text in helps(app) for file in FILE.findall(text)} - {OWN}

    assert {"workloads/article-bert.yaml"} <= named
    assert [] == [file for file in sorted(named) if not (ROOT / file).is_file()]
