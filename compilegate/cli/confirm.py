"""Asks before a command changes production, or spends money."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from compilegate.cli.output import say
from compilegate.domain.errors import InvalidInputError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(
    sentences: Sequence[str],
    *,
    yes: bool,
    as_json: bool,
    what: str = "changes what production trains",
) -> None:
    """Say what will happen and wait for a yes; raises typer.Exit(1) at a no.

    ``what`` says what the command does. Where nobody can be asked, only ``--yes`` goes on:
    InvalidInputError without it.
    """
    if not as_json:
        for sentence in sentences:
            say(sentence)
    if yes:
        return
    if as_json or not _somebody_there():
        raise InvalidInputError(
            f"{what}, and nobody can be asked here", field="--yes",
            fix="look at what would happen in a terminal, or add --yes",
        )  # fmt: skip
    if not typer.confirm("Go on?"):
        say("Nothing was changed.")
        raise typer.Exit(1)


def _somebody_there() -> bool:
    return sys.stdin.isatty()
