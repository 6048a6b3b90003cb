"""What pages and Markdown are put together from: templates, downloads, safe text."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from compilegate.domain import console, reasons, utc
from compilegate.domain.claims import NO_AMOUNT, VERDICTS
from compilegate.domain.escaping import escape_cell, escape_markdown
from compilegate.domain.formats import UNKNOWN, interval, money, number, pair, shown, significant
from compilegate.domain.notes import said
from compilegate.domain.outside import visible
from compilegate.domain.wording import formats
from compilegate.report import statements
from compilegate.report.charts.figure import Chart
from compilegate.report.charts.svg import draw, legend

ASSETS = Path(__file__).parent / "assets"
# Characters: with all charts, a page stays below 400 kB.
EMBEDDED_MAX = 120_000
DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
HYPHENATED = re.compile(r"[^\s<>]*-[^\s<>]*")
TONE_MARKS = {"good": "✅", "off": "⏹️", "open": "❔", "bad": "⚠️"}


@dataclass(frozen=True)
class Page:
    """A page in every format; ``html`` needs no other file, ``json`` is for programs."""

    html: str
    markdown: str
    json: str

    @property
    def texts(self) -> dict[str, str]:
        """The files by their ending."""
        return {"html": self.html, "md": self.markdown, "json": self.json}


@dataclass(frozen=True)
class Download:
    """A document to keep: a link that needs no server, or where a large one lies."""

    name: str
    file: str
    uri: Markup | None = None
    place: str = ""

    @classmethod
    def of(cls, name: str, file: str, text: str, *, place: str) -> Download:
        """A download of a text; beyond EMBEDDED_MAX it is named by the place where it is kept."""
        if len(text) > EMBEDDED_MAX:
            return cls(name, file, place=place)
        kind = "text/csv" if file.endswith(".csv") else "application/json"
        body = base64.b64encode(text.encode()).decode()
        uri = Markup(f"data:{kind};base64,{body}")  # noqa: S704 - base64 needs no escapes
        return cls(name, file, uri)


def link(uri: str, text: str) -> Markup:
    """A link, whatever its text contains."""
    return Markup('<a href="{}">{}</a>').format(uri, visible(text))


def unbroken(text: str) -> Markup:
    """Text in which no line starts with a percent sign, and none ends within a date."""
    return _whole(DATE, text.replace(" %", "\N{NO-BREAK SPACE}%"))


def command(text: str) -> Markup:
    """A command whose options and names stay whole; spaces alone end its lines."""
    return Markup("<code>{}</code>").format(_whole(HYPHENATED, text))


def _whole(pieces: re.Pattern[str], text: str) -> Markup:
    """The text with its pieces marked; browsers end lines at the hyphens of others."""
    marked = pieces.sub(r'<span class="whole">\g<0></span>', str(escape(visible(text))))
    return Markup(marked)  # noqa: S704 - escaped above; no piece has a character of markup


def kept_at(key: str, *, region: str | None, bucket: str | None) -> str | Markup:
    """An object of the data bucket: linked where a console shows it, else its S3 URI or its key."""
    uri = f"s3://{bucket}/{key}" if bucket else key
    return link(console.s3_object(region, bucket, key), uri) if region and bucket else uri


def csv_text(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """A line for each row; empty without any."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: escape_cell(row[key]) for key in row} for row in rows)
    return text.getvalue()


def render_page(template: str, drawn: Sequence[Chart], values: Mapping[str, Any]) -> str:
    """The page of a template with its charts and its style inside; it holds no script."""
    style = (ASSETS / "style.css").read_text(encoding="utf-8")
    switches = switch_style(max((len(chart.views) for chart in drawn), default=0))
    return (
        _pages()
        .get_template(template)
        .render(
            **values,
            charts=drawn,
            style=Markup(style + switches),  # noqa: S704 - our file and numbers
        )
    )


def switch_style(views: int) -> str:
    """Shows the view whose radio button is checked; it must come among the first ``views``."""
    shown = ",".join(
        f".switch>input:nth-of-type({n}):checked~.view:nth-of-type({n})"
        for n in range(1, views + 1)
    )
    return f"{shown}{{display:block}}\n" if shown else ""


@cache
def _pages() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "svg": draw, "legend": legend, "unbroken": unbroken, "command": command,
    }  # fmt: skip
    return environment


def _visible(value: Any) -> Any:
    """What a template shows; text of a job or a file may be in it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def stable_json(document: Any, *, indent: int | None = 2) -> str:
    """JSON with sorted keys, the same text for the same document; NaN and infinities are null."""
    separators = None if indent else (",", ":")
    return json.dumps(
        _finite(document), sort_keys=True, indent=indent, separators=separators,
        ensure_ascii=False, allow_nan=False, default=str,
    )  # fmt: skip


def _finite(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {visible(str(key)): _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(item) for item in value]
    return value


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table and an empty line; the cells' contents stay text."""
    align = ["---", *("---:" for _ in columns[1:])]
    lines = [
        "| " + " | ".join(escape_markdown(cell) for cell in row) + " |" for row in (columns, *rows)
    ]
    return "\n".join([lines[0], "| " + " | ".join(align) + " |", *lines[1:], ""])


# Texts by templates over the records' own types, ``assets/NAME.txt.j2``.
#
# Text of a template that goes over several lines is one line. Paragraphs are separated by an empty
# line; ``row(…)`` puts a row of cells, of which the text of a ``call`` block is the last. What a
# record says keeps its own line breaks.


Row = tuple[Any, ...]
# Private characters: a line break of a value, and the end of a paragraph.
BREAK, END = "\ue000", "\ue001"
FOLD, EMPTY_LINE = re.compile(r"\s*\n\s*"), re.compile(r"^\n", re.MULTILINE)
EMPTY_LINES = re.compile(r"\n{3,}")


def paragraphs(template: str | Path, **values: Any) -> list[str]:
    """The template's paragraphs; one without a text is left out. A path is another package's."""
    text = _text_of(template).render(values)
    return [line for part in text.split(END) if (line := _folded(part))]


def paragraph(template: str, **values: Any) -> str:
    """The text of a template that has one."""
    return " ".join(paragraphs(template, **values))


def rows(template: str | Path, **values: Any) -> list[Row]:
    """What the template puts, in its order; a row whose last cell is empty is left out."""
    put: list[Row] = []

    def row(*cells: Any, caller: Callable[[], str] | None = None) -> str:
        made = (*cells, _folded(caller())) if caller else cells
        put.extend([made] if made[-1] else [])
        return ""

    _text_of(template).render(values, row=row)
    return put


def lines(template: str, **values: Any) -> list[str]:
    """The lines of a template that is a text of several; each value is within one."""
    text = _text_of(template).render(values).replace(END, "")
    return [" ".join(line.replace(BREAK, " ").split()) for line in text.strip().split("\n")]


def markdown(template: str, **values: Any) -> str:
    """A document with at most one empty line between its parts."""
    text = _texts(ASSETS).get_template(f"{template}.md.j2").render(values).replace(END, "")
    text = "\n".join(line.rstrip() for line in text.replace(BREAK, "\n").split("\n"))
    return EMPTY_LINES.sub("\n\n", text).strip() + "\n"


def _folded(text: str) -> str:
    return FOLD.sub(" ", text.strip()).replace(BREAK, "\n")


class _Loader(FileSystemLoader):
    def get_source(self, environment: Environment, template: str) -> Any:
        """The text with its empty lines marked, of which Jinja drops those after a statement."""
        text, *others = super().get_source(environment, template)
        return EMPTY_LINE.sub(f"{END}\n", text), *others


def _text_of(template: str | Path) -> Template:
    place = ASSETS / template
    return _texts(place.parent).get_template(f"{place.name}.txt.j2")


@cache
def _texts(folder: Path) -> Environment:
    environment = Environment(  # noqa: S701 - plain text; pages escape what they show
        loader=_Loader(folder),
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
        "VERDICTS": VERDICTS, "TONE_MARKS": TONE_MARKS,
        "interval": interval, "markdown_table": markdown_table, "money": money, "number": number,
        "pair": pair, "significant": significant,
    }  # fmt: skip
    return environment
