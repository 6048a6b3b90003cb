"""Where commands write: people's text or one JSON document on standard output.

Piped output has neither colour nor box drawing that moves, and is laid out for 80 columns.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

VERDICT_STYLES = {
    "promote": "green", "permanent": "green", "eligible": "green",
    "stay_off": "yellow", "ineligible": "yellow",
    "inconclusive": "cyan", "continue": "cyan", "benchmark": "cyan",
    "revert": "red", "invalid": "red", "failed": "red",
}  # fmt: skip
VERDICT_WORDS = {
    "promote": "turn it on", "permanent": "on for good", "eligible": "eligible",
    "stay_off": "leave it off", "ineligible": "not eligible", "inconclusive": "not proven",
    "continue": "not settled", "benchmark": "measure it", "revert": "turned off again",
    "invalid": "no fair comparison", "failed": "trial failed",
}  # fmt: skip


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
    words = VERDICT_WORDS.get(verdict, verdict)
    return Text(words, style=f"bold {VERDICT_STYLES.get(verdict, '')}".strip())


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
