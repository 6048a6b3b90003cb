"""Where commands write: text for people, or one JSON document on standard output.

Piped output has neither colour nor box drawing that moves, and is laid out for 80 columns.

A command's screen is a text template over the document that ``--json`` prints.
Templates lie in ``compilegate/cli/templates``, named after their command; a command of another
distribution names the path of its own. The text of a template is the text of the screen:

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

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from compilegate.domain import formats
from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import verdict_label
from compilegate.domain.errors import InvalidInputError, shortened
from compilegate.domain.errors import shown as value_shown
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.utc import minute

TONE_STYLES = {"good": "green", "off": "yellow", "open": "cyan", "bad": "red"}
UNKNOWN = "-"  # of a table's cell; plain text, as a terminal may show no other dash
REASON_MARKS = {Severity.BLOCK: "blocks: ", Severity.WARN: "warning: "}
Item = TypeVar("Item")


class _Screen(Console):
    """A console that leaves a lost reader to the command, which cleans up."""

    def on_broken_pipe(self) -> None:
        """Instead of rich's exit code 1; called while a BrokenPipeError is handled."""
        raise  # noqa: PLE0704


def console(*, stderr: bool = False) -> Console:
    """A console on the current standard streams; text is never read as markup or emoji."""
    return _Screen(stderr=stderr, highlight=False, markup=False, emoji=False)


def busy_note() -> str:
    """That the machine has other work for all of its cores, empty where it has not."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    on = f"load {load:.1f} on {formats.plural(cores, 'core')}"
    return f"This machine is busy ({on})" if load >= cores else ""


def moves(out: Console) -> bool:
    """Whether what is shown may be drawn again: not in a file or pipe, FORCE_COLOR or not."""
    return out.is_interactive and out.file.isatty()


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error for as long as something takes, on a terminal only.

    Gives what changes its text.
    """
    shown = console(stderr=True)
    if not moves(shown):
        yield lambda _: None
        return
    with shown.status(text) as status:

        def show(text: str) -> None:
            line = Text(text)
            line.truncate(shown.width - 3, overflow="ellipsis")  # beside the spinner
            status.update(line)

        yield show


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


def say_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Names beside their values, below them where a word of theirs needs the room.

    A row without a value is left out.
    """
    rows = [row for row in rows if row[1]]
    width = max((len(name) for name, _ in rows), default=0) + 1
    longest = max((len(word) for _, value in rows for word in value.split()), default=0)
    beside = 2 + width + longest <= console().width
    for name, value in rows:
        if beside:
            say(f"{name:<{width}}{value}", indent=2, hang=width)
        else:
            say(name, indent=2)
            say(value, indent=4)


def say_verdict(name: str, verdict: str, code: str = "", *, indent: int = 0) -> None:
    """``name: verdict (code)`` on one line."""
    label = verdict_label(verdict)
    words = (label.text.lower(), f"bold {TONE_STYLES[label.tone]}")
    end = f" ({code})" if code else ""
    console().print(Text.assemble((f"{' ' * indent}{name}: ", "bold"), words, end))


def say_styled(*parts: str | tuple[str, str], whole: bool = False) -> None:
    """A line of parts, some with a style; ``whole`` is never wrapped."""
    console().print(Text.assemble(*parts), soft_wrap=whole)


def say_cut(text: str, *, indent: int) -> None:
    """One line of code, cut where the screen ends."""
    out = console()
    # Control characters of a script never reach the terminal.
    shown = "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}"
                    for mark in text.expandtabs(4))  # fmt: skip
    line = Text(" " * indent + shown)
    line.truncate(out.width, overflow="ellipsis")
    out.print(line, soft_wrap=True)


def reason_lines(reasons: Sequence[Reason], *, indent: int = 2) -> None:
    """Each reason in a paragraph, its fix after it; lines to copy stay as they are."""
    for reason in reasons:
        mark = REASON_MARKS.get(reason.severity or Severity.INFO, "")
        message = reason.message.rstrip(".")
        first, *lines = reason.fix.split("\n")
        if first and not lines:
            first = f"{first.rstrip('.')}."
        fix = f" Fix: {first}" if first else ""
        say(f"- {mark}{message}.{fix}", indent=indent, hang=2)
        for line in lines:
            if line.endswith(":"):
                say(line, indent=indent + 2)
            else:
                typer.echo(" " * (indent + 4) + line)


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


def emit_json(value: object) -> None:
    """One JSON document for programs."""
    typer.echo(json.dumps(value, indent=2, default=str))


def progress(
    items: Iterable[Item], total: int | None, doing: str, *, above: int = 0
) -> Iterator[Item]:
    """The same items, with a bar on a terminal where there are more than ``above``.

    Where nobody knows how many there are (None), they are counted, and the last count stays.
    """
    if not sys.stderr.isatty() or (total is not None and total <= above):
        yield from items
        return
    from rich.progress import Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - slow to import, seldom used

    counted = (TextColumn("{task.description}: {task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(
        *(counted if total is None else ()), console=console(stderr=True),
        transient=total is not None, redirect_stdout=sys.stdout.isatty(),
    ) as bar:  # fmt: skip
        yield from bar.track(items, total=total, description=doing)


def confirm(sentences: Sequence[str], *, yes: bool, as_json: bool) -> None:
    """Say what will happen and wait for a yes; raises typer.Exit(1) at a no.

    Where stdin is not a terminal, ``--yes`` is required: InvalidInputError without it.
    """
    if not as_json:
        for sentence in sentences:
            say(sentence)
    if yes:
        return
    if as_json or not is_interactive():
        raise InvalidInputError(
            "is required with --json and where stdin is not a terminal", field="--yes",
            fix="add --yes, or run the command in a terminal to see what it would do",
        )  # fmt: skip
    if not typer.confirm("Continue?"):
        say("Nothing was changed.")
        raise typer.Exit(1)


def is_interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty()


# Tables on any width: side by side where every word stays whole, else a paragraph per row.


def say_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[int] = (),
    whole: Collection[int] = (),
    gap: int = 2,
    indent: int = 0,
) -> None:
    """A table without lines; ``right`` are columns of numbers, ``whole`` those never wrapped.

    Where the width would break a word, each row is a paragraph instead: its first cell, then the
    other columns' titles beside their values.
    """
    cells = [tuple(row) for row in rows]
    out = console()
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for index, title in enumerate(columns):
        justify: JustifyMethod = "right" if index in right else "left"
        table.add_column(title, justify=justify, overflow="fold", no_wrap=index in whole)
    for row in cells:
        table.add_row(*row)
    with out.capture() as captured:
        out.print(table, width=max(out.width - indent, 1))
    lines = [Text.from_ansi(line) for line in captured.get().splitlines()]
    words = {word for row in (columns, *cells) for cell in row for word in cell.split()}
    kept = {word for line in lines for word in line.plain.split()}
    if words <= kept and all(len(line.plain) <= out.width - indent for line in lines):
        for line in lines:
            line.rstrip()
            out.print(Text(" " * indent) + line if line else "", soft_wrap=True)
        return
    name, *titles = (" ".join(title.split()) for title in columns)
    for row in cells:
        first, *others = (" ".join(cell.split()) for cell in row)
        say(" ".join(filter(None, (name, first))), "bold", hang=2)
        # A row may have fewer cells than there are columns.
        say_rows(zip(titles, others, strict=False))


# Screens as templates.

TEMPLATES = Path(__file__).parents[1] / "templates"
# Private characters: values lose theirs, so that only a template can set a mark.
WHOLE, BOLD, DIM, HANGING, HANG, ROW, BLOCK, JOINED = map(chr, range(0xE000, 0xE008))
LINE_MARKS = {"whole": WHOLE, "bold": BOLD, "dim": DIM, "hanging": HANGING, "hang": HANG}
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
    "clock": formats.clock, "count": formats.count, "days": formats.days,
    "dollars": formats.dollars,
    "duration": formats.duration, "elapsed": formats.elapsed,
    "hours": lambda amount: formats.duration(amount * 3600), "minute": minute,
    "money": formats.money, "percent": formats.percent, "plural": formats.plural, "ratio": ratio,
    "shortened": shortened, "significant": formats.significant,
    "value": value_shown,
}  # fmt: skip


class _Mark(str):
    """What a template, not a value, puts into the text."""

    __slots__ = ()


def answer(document: Any, template: str | Path, *, as_json: bool, **more: Any) -> None:
    """Print the document for programs, else its screen."""
    if as_json:
        emit_json(document)
    else:
        show(template, document, **more)


def show(template: str | Path, document: Any = None, **more: Any) -> None:
    """Print the screen of a document; one that is no mapping is the template's ``document``."""
    values = document if isinstance(document, Mapping) else {"document": document}
    blocks: list[Callable[[], None]] = []
    makers = {printer.__name__: _block(printer, blocks) for printer in BLOCKS}
    place = TEMPLATES / f"{template}.txt.j2"
    text = _environment(place.parent).get_template(place.name).render(values, **makers, **more)
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
    hang = max(text.find(HANG), 0) + 2 * marks.count(HANGING)
    if text.startswith("- "):
        hang += 2
    style = None
    if BOLD in marks:
        style = "bold"
    elif DIM in marks:
        style = "dim"
    say(text.replace(HANG, ""), style, indent=len(unmarked) - len(text), hang=hang)


class _Loader(FileSystemLoader):
    def get_source(self, environment: Environment, template: str) -> Any:
        """The text without comments; marks say what continues a line and what is a row."""
        text, *others = super().get_source(environment, template)
        text = _EMPTY.sub(f"{HANGING}\n", _COMMENT.sub("", text))
        text = _ROW.sub(rf"{ROW}\1{ROW}", text)
        return _CONTINUES.sub(JOINED, text), *others


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(  # noqa: S701 - text for a terminal
        loader=_Loader(folder),
        finalize=_value,
        undefined=StrictUndefined,
        line_statement_prefix="%",
        keep_trailing_newline=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {name: _Mark(mark) for name, mark in LINE_MARKS.items()}
    return environment


def _value(value: Any) -> Any:
    """A value stays within its line."""
    plain = isinstance(value, str) and not isinstance(value, _Mark)
    return _NOT_IN_VALUES.sub(" ", value) if plain else value
