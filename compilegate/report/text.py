"""Texts by templates over the records' own types: ``report/assets/NAME.txt.j2``.

Text of a template that goes over several lines is one line. Paragraphs are separated by an empty
line; ``row(…)`` puts a row of cells, of which the text of a ``call`` block is the last. What a
record says keeps its own line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from compilegate.domain import reasons, utc
from compilegate.domain.claims import NO_AMOUNT, VERDICTS, command_at
from compilegate.domain.escaping import escape_markdown
from compilegate.domain.formats import UNKNOWN, interval, money, number, pair, shown, significant
from compilegate.domain.notes import said
from compilegate.domain.wording import formats
from compilegate.report import statements
from compilegate.report.markup import ASSETS, TONE_MARKS, markdown_table

Row = tuple[Any, ...]
# Private characters: a line break of a value, and the end of a paragraph.
BREAK, END = "\ue000", "\ue001"
FOLD, EMPTY_LINE = re.compile(r"\s*\n\s*"), re.compile(r"^\n", re.MULTILINE)
EMPTY_LINES = re.compile(r"\n{3,}")


def paragraphs(template: str, **values: Any) -> list[str]:
    """The template's paragraphs; one without a text is left out."""
    text = _environment().get_template(f"{template}.txt.j2").render(values)
    return [line for part in text.split(END) if (line := _folded(part))]


def paragraph(template: str, **values: Any) -> str:
    """The text of a template that has one."""
    return " ".join(paragraphs(template, **values))


def rows(template: str, **values: Any) -> list[Row]:
    """What the template puts, in its order; a row whose last cell is empty is left out."""
    put: list[Row] = []

    def row(*cells: Any, caller: Callable[[], str] | None = None) -> str:
        made = (*cells, _folded(caller())) if caller else cells
        put.extend([made] if made[-1] else [])
        return ""

    _environment().get_template(f"{template}.txt.j2").render(values, row=row)
    return put


def lines(template: str, **values: Any) -> list[str]:
    """The lines of a template that is a text of several; each value is within one."""
    text = _environment().get_template(f"{template}.txt.j2").render(values).replace(END, "")
    return [" ".join(line.replace(BREAK, " ").split()) for line in text.strip().split("\n")]


def markdown(template: str, **values: Any) -> str:
    """A document with at most one empty line between its parts."""
    text = _environment().get_template(f"{template}.md.j2").render(values).replace(END, "")
    text = "\n".join(line.rstrip() for line in text.replace(BREAK, "\n").split("\n"))
    return EMPTY_LINES.sub("\n\n", text).strip() + "\n"


def _folded(text: str) -> str:
    return FOLD.sub(" ", text.strip()).replace(BREAK, "\n")


class _Loader(FileSystemLoader):
    def get_source(self, environment: Environment, template: str) -> Any:
        """The text with its empty lines marked, of which Jinja drops those after a statement."""
        text, *others = super().get_source(environment, template)
        return EMPTY_LINE.sub(f"{END}\n", text), *others


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - plain text; pages escape what they show
        loader=_Loader(ASSETS),
        finalize=lambda value: value.replace("\n", BREAK) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        line_statement_prefix="%",
    )
    environment.filters |= {
        **formats(),
        "shown": shown,
        "said": said,
        "minute": utc.minute,
        "day": utc.day,
        "bare_minute": utc.bare_minute,
        "md": escape_markdown,
    }
    environment.globals |= {
        "statements": statements, "reasons": reasons, "NO_AMOUNT": NO_AMOUNT, "UNKNOWN": UNKNOWN,
        "VERDICTS": VERDICTS, "TONE_MARKS": TONE_MARKS, "command_at": command_at,
        "interval": interval, "markdown_table": markdown_table, "money": money, "number": number,
        "pair": pair, "significant": significant,
    }  # fmt: skip
    return environment
