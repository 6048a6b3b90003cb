"""A command's screen: a text template over the document that ``--json`` prints.

Templates lie in ``compilegate/cli/templates``, named after their command. The text of a template
is the text of the screen:

- a line is a paragraph: wrapped at the terminal's width, later lines indented like the first; by
  two more where it begins with ``- `` or ``{{ hanging }}``; ``{{ hang }}`` is where they begin
- ``{{ whole }}`` begins a line that is never wrapped, such as a path or a command to copy,
  ``{{ bold }}`` and ``{{ dim }}`` a line of that style
- a line that begins with a backslash continues the one before it
- ``: name: value`` lines in a row are names beside their values; without a value a line is left out
- ``% if``, ``% for``, ``% set`` are lines of their own, and so are comments, ``{# … #}``;
  ``{% if %}`` is within a line
- blocks, each on a line of its own: ``{{ say_table(…) }}``, ``{{ say_verdict(…) }}``,
  ``{{ reason_lines(…) }}``, ``{{ say_styled(…) }}``, ``{{ say_cut(…) }}``; ``{{ say_rows(…) }}``
  where a template cannot name the rows
- figures and times by filters: ``{{ usd | money }}``, ``{{ at | minute }}``

``answer(document, template, as_json=…)`` prints the document or the screen. What a screen needs
beside the document is given by name. A name that is not there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from compilegate.cli.common.output import (
    emit_json,
    reason_lines,
    say,
    say_cut,
    say_rows,
    say_styled,
    say_table,
    say_verdict,
)
from compilegate.domain import formats
from compilegate.domain.arithmetic import ratio
from compilegate.domain.errors import shortened
from compilegate.domain.errors import shown as value_shown
from compilegate.domain.utc import minute

TEMPLATES = Path(__file__).parents[1] / "templates"
# Private characters: values lose theirs, so that only a template can set a mark.
WHOLE, BOLD, DIM, HANGING, HANG, ROW, BLOCK, JOINED = map(chr, range(0xE000, 0xE008))
MARKS = {"whole": WHOLE, "bold": BOLD, "dim": DIM, "hanging": HANGING, "hang": HANG}
_NOT_IN_VALUES = re.compile(f"[\n{WHOLE}-{JOINED}]")
_CONTINUES = re.compile(r"^ *\\", re.MULTILINE)
_EMPTY = re.compile(r"^\n", re.MULTILINE)  # Jinja drops one after a statement
_ROW = re.compile(r"^ *: ([^:{]+): *", re.MULTILINE)
_COMMENT = re.compile(r"^ *{#.*?#}\n", re.MULTILINE | re.DOTALL)
Printer = Callable[..., None]
BLOCKS: tuple[Printer, ...] = (
    say_rows, say_table, say_verdict, say_styled, say_cut, reason_lines,
)  # fmt: skip
FILTERS = {
    "clock": formats.clock, "count": formats.count, "duration": formats.duration,
    "elapsed": formats.elapsed,
    "hours": lambda amount: formats.duration(amount * 3600), "minute": minute,
    "money": formats.money, "percent": formats.percent, "plural": formats.plural, "ratio": ratio,
    "shown": formats.shown, "shortened": shortened, "significant": formats.significant,
    "value": value_shown,
}  # fmt: skip


class _Mark(str):
    """What a template, not a value, puts into the text."""

    __slots__ = ()


def answer(document: Any, template: str, *, as_json: bool, **more: Any) -> None:
    """Print the document for programs, else its screen."""
    if as_json:
        emit_json(document)
    else:
        show(template, document, **more)


def show(template: str, document: Any = None, **more: Any) -> None:
    """Print the screen of a document; one that is no mapping is the template's ``document``."""
    values = document if isinstance(document, Mapping) else {"document": document}
    blocks: list[Callable[[], None]] = []
    makers = {printer.__name__: _block(printer, blocks) for printer in BLOCKS}
    text = _environment().get_template(f"{template}.txt.j2").render(values, **makers, **more)
    lines = text.removesuffix("\n").replace(f"\n{JOINED}", "").split("\n")
    for are_rows, group in groupby(lines, lambda line: line.startswith(ROW)):
        if are_rows:
            say_rows([_row(line) for line in group])
            continue
        for line in group:
            if line.startswith(BLOCK):
                blocks[int(line[1:])]()
            elif line.startswith(WHOLE):
                typer.echo(line[1:])
            else:
                _say_paragraph(line)


def _row(line: str) -> tuple[str, str]:
    _, name, value = line.split(ROW)
    return name, value.strip(" ")


def _block(printer: Printer, blocks: list[Callable[[], None]]) -> Callable[..., _Mark]:
    """What a template calls; the block is printed when its line is."""

    def mark(*values: Any, **options: Any) -> _Mark:
        blocks.append(partial(printer, *values, **options))
        return _Mark(f"{BLOCK}{len(blocks) - 1}")

    return mark


def _say_paragraph(line: str) -> None:
    unmarked = line.lstrip(f"{BOLD}{DIM}{HANGING}")
    marks = line.removesuffix(unmarked)
    text = unmarked.lstrip(" ")
    hang = max(text.find(HANG), 0) + 2 * marks.count(HANGING) + 2 * text.startswith("- ")
    style = "bold" if BOLD in marks else "dim" if DIM in marks else None
    say(text.replace(HANG, ""), style, indent=len(unmarked) - len(text), hang=hang)


class _Loader(FileSystemLoader):
    def get_source(self, environment: Environment, template: str) -> Any:
        """The text without comments; marks say what continues a line and what is a row."""
        text, *others = super().get_source(environment, template)
        text = _EMPTY.sub(f"{HANGING}\n", _COMMENT.sub("", text))
        text = _ROW.sub(rf"{ROW}\1{ROW}", text)
        return _CONTINUES.sub(JOINED, text), *others


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - text for a terminal
        loader=_Loader(TEMPLATES),
        finalize=_value,
        undefined=StrictUndefined,
        line_statement_prefix="%",
        keep_trailing_newline=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {name: _Mark(mark) for name, mark in MARKS.items()}
    return environment


def _value(value: Any) -> Any:
    """A value stays within its line."""
    plain = isinstance(value, str) and not isinstance(value, _Mark)
    return _NOT_IN_VALUES.sub(" ", value) if plain else value
