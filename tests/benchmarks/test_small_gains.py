"""The bench of small gains: one trial by real walls, and the page that has its results."""

from __future__ import annotations

from benchmarks.small_gains import pairs, stacks
from benchmarks.small_gains.__main__ import CELLS, Cell, play
from benchmarks.small_gains.command import PAGE


def test_a_large_gain_is_proven_and_none_is_not() -> None:
    assert play(Cell("large", 1.05), 0).promoted
    assert not play(Cell("none", 1.0), 0).promoted


def test_a_stack_grows_by_what_is_gained_and_stops_before_it_has_lost_a_margin() -> None:
    free, dear = stacks.Stack("free", 1.03), stacks.Stack("dear", 1.03, loss=0.8)

    assert 4 <= sum(layer.promoted for layer in stacks.play(free, 0))
    assert 1 >= sum(layer.promoted for layer in stacks.play(dear, 0))


def test_every_cell_is_on_the_page() -> None:
    page = PAGE.read_text()

    cells = [*CELLS, *pairs.CELLS, *stacks.STACKS]
    assert [cell.name for cell in cells if f"| {cell.name} |" not in page] == []


def test_where_nodes_differ_pairs_prove_what_single_jobs_do_not() -> None:
    (paired, _, its_hours), (alone, _, hours) = (
        pairs.play((pairs.Nodes(1.02, together), 2)) for together in (True, False)
    )
    assert paired and (not alone or its_hours < hours)
