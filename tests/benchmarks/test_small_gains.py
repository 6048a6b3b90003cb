"""The bench of small gains: one trial by real walls, and the page that has its results."""

from __future__ import annotations

from benchmarks.small_gains.__main__ import CELLS, PAGE, Cell, play


def test_a_large_gain_is_proven_and_none_is_not() -> None:
    assert play(Cell("large", 1.05), 0).promoted
    assert not play(Cell("none", 1.0), 0).promoted


def test_every_cell_is_on_the_page() -> None:
    page = PAGE.read_text()

    assert [cell.name for cell in CELLS if f"| {cell.name} |" not in page] == []
