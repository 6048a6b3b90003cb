"""Asks before a command changes production."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from compilegate.cli.output import say
from compilegate.domain.errors import InvalidInputError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(sentences: Sequence[str], *, yes: bool, as_json: bool) -> None:
    """Say what will happen and wait for a yes; raises typer.Exit(1) at a no.

    Where stdin is not a terminal, only ``--yes`` goes on: InvalidInputError without it.
    """
    if not as_json:
        for sentence in sentences:
            say(sentence)
    if yes:
        return
    if as_json or not _somebody_there():
        raise InvalidInputError(
            "is needed where stdin is not a terminal, and with --json", field="--yes",
            fix="run the command in a terminal to see what it would do, or add --yes",
        )  # fmt: skip
    if not typer.confirm("Go on?"):
        say("Nothing was changed.")
        raise typer.Exit(1)


def _somebody_there() -> bool:
    return sys.stdin.isatty()
