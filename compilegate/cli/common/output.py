"""Where commands write: people's text or one JSON document on standard output.

Piped output has neither colour nor box drawing that moves, and is laid out for 80 columns.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.words import verdict_label

TONE_STYLES = {"good": "green", "off": "yellow", "open": "cyan", "bad": "red"}


def console(*, stderr: bool = False) -> Console:
    """A console on today's standard streams; no words are read as markup or as names of emoji."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def say(text: str = "", style: str | None = None, *, indent: int = 0, hang: int = 0) -> None:
    """A paragraph, wrapped to the width, later lines ``hang`` further in.

    Never read as markup, because it may hold a user's own words.
    """
    out = console()
    first = " " * indent
    lines = textwrap.wrap(
        text, out.width, initial_indent=first, subsequent_indent=first + " " * hang,
        break_long_words=False, break_on_hyphens=False,
    ) or [""]  # fmt: skip
    out.print(Text("\n".join(lines), style=style or ""), soft_wrap=True)


def error_text(message: str) -> str:
    """``Error: message``; on a terminal wrapped at words, else left whole for programs."""
    lines, shown = f"Error: {message}".split("\n"), console(stderr=True)
    if not shown.is_terminal:
        return "\n".join(lines)
    return "\n".join(
        textwrap.fill(
            line, shown.width, subsequent_indent="  ", break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )  # fmt: skip


def say_line(text: str) -> None:
    """A line that must stay whole, such as a path or a command to copy."""
    typer.echo(text)


def emit_json(value: object) -> None:
    """One JSON document for programs."""
    typer.echo(json.dumps(value, indent=2, default=str))


def one_or_many(values: Sequence[Any]) -> Any:
    """One given file answers with one document, several with a list."""
    return values[0] if len(values) == 1 else list(values)


def verdict_text(verdict: str) -> Text:
    """The verdict in people's words, coloured where there is colour."""
    label = verdict_label(verdict)
    return Text(label.text.lower(), style=f"bold {TONE_STYLES[label.tone]}")


def say_verdict(name: str, verdict: str, code: str = "", *, indent: int = 0) -> None:
    """``name: verdict (code)`` on one line."""
    line = Text.assemble((f"{' ' * indent}{name}: ", "bold"), verdict_text(verdict))
    console().print(line + Text(f" ({code})") if code else line)


def reason_lines(reasons: Sequence[Mapping[str, Any]], *, indent: int = 2) -> None:
    """Each reason in a paragraph, its fix after it; lines to copy stay as they are."""
    for reason in reasons:
        severity = str(reason.get("severity") or "")
        mark = {"block": "stops it: ", "warn": "mind: ", "info": ""}.get(severity, "")
        message = str(reason.get("message")).rstrip(".")
        first, *lines = str(reason.get("fix") or "").split("\n")
        if first and not lines:
            first = f"{first.rstrip('.')}."
        fix = f" Fix: {first}" if first else ""
        say(f"- {mark}{message}.{fix}", indent=indent, hang=2)
        for line in lines:
            if line.endswith(":"):
                say(line, indent=indent + 2)
            else:
                say_line(" " * (indent + 4) + line)


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
    if as_json or not _is_interactive():
        raise InvalidInputError(
            "is needed where stdin is not a terminal, and with --json", field="--yes",
            fix="run the command in a terminal to see what it would do, or add --yes",
        )  # fmt: skip
    if not typer.confirm("Go on?"):
        say("Nothing was changed.")
        raise typer.Exit(1)


def _is_interactive() -> bool:
    return sys.stdin.isatty()
