"""Tables on any width: side by side where every word stays whole, else a paragraph per row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.table import Table
from rich.text import Text

from compilegate.cli.common.output import console, say, say_rows


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
    with out.capture() as captured:
        table = _plain_table(columns, cells, right, whole, gap)
        out.print(table, width=max(out.width - indent, 1))
    text = captured.get()
    if _keeps_words(text, [columns, *cells], out.width - indent):
        for line in text.splitlines():
            shown = Text.from_ansi(line)
            shown.rstrip()
            out.print(Text(" " * indent) + shown if shown else "", soft_wrap=True)
    else:
        _paragraphs(columns, cells)


def _plain_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int],
    whole: Collection[int],
    gap: int,
) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for index, title in enumerate(columns):
        table.add_column(
            title,
            justify="right" if index in right else "left",
            overflow="fold",
            no_wrap=index in whole,
        )
    for row in rows:
        table.add_row(*row)
    return table


def _keeps_words(text: str, cells: Sequence[Sequence[str]], width: int) -> bool:
    """Whether a table as rendered has every word of its cells, within the width."""
    shown = Text.from_ansi(text).plain
    words = {word for row in cells for cell in row for word in cell.split()}
    return words <= set(shown.split()) and all(len(line) <= width for line in shown.splitlines())


def _paragraphs(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    titles = [" ".join(title.split()) for title in columns]
    for row in rows:
        first, *others = (" ".join(cell.split()) for cell in row)
        say(" ".join(filter(None, (titles[0], first))), "bold", hang=2)
        # A row may have fewer cells than there are columns.
        say_rows(zip(titles[1:], others, strict=False))
