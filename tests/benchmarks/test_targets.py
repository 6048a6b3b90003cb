"""The table of targets: what is computed, and of which judge."""

import json
from dataclasses import replace

import pytest

from benchmarks.decision import targets
from benchmarks.decision.cells import Cell
from benchmarks.decision.provenance import judge_name
from benchmarks.decision.targets import TARGETS, Target, keep, largest, rows, simulate, table

TINY = 0.001  # of thousands of workloads


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    return simulate(TARGETS[0].cell, 1, TINY, tmp_path_factory.mktemp("played"))


def test_every_row_says_whose_figure_it_is(cell):
    row = rows([cell])[0]
    assert judge_name() == row["judge"]
    assert 4 == row["n"]
    assert row["state"] == TARGETS[0].state(cell["figures"]["false_promotes"])


def test_a_figure_of_another_cell_is_not_taken(cell):
    row = next(row for row in rows([cell]) if row["name"] == "trend5")
    assert (None, None, None) == (row["value"], row["state"], row["judge"])


def figure(percent, se, n=1000):
    return {"percent": percent, "se": se, "n": n}


def test_bounds_are_from_above_or_from_below_and_reached_beyond_chance_or_within():
    target = Target("name", "words", Cell(), "figure", 2.0, "")
    figures = [figure(1.5, 0.3), figure(1.9, 0.3), figure(2.1, 0.3), figure(None, None)]
    assert ["shown", "reached", "missed", None] == [target.state(one) for one in figures]
    least = replace(target, least=True)
    assert ["missed", "reached", "shown"] == [least.state(one) for one in (
        figure(1.9, 0.3), figure(2.1, 0.3), figure(2.6, 0.3))]  # fmt: skip


def test_none_among_six_thousand_is_what_the_fleets_bound_takes():
    fleet = next(target for target in TARGETS if target.name == "mixed")
    states = [fleet.state(figure(0.0, 0.0, n)) for n in (6000, 5900)]
    assert ["shown", "reached"] == states


def test_a_cell_that_several_rows_need_is_played_once_with_the_most_workloads():
    few, many = Cell(workloads=3), Cell(workloads=5)
    assert [many] == largest([few, many, few])
    assert 2 == len(largest([few, replace(few, spread=0.5)]))


def test_every_target_is_a_figure_of_its_cell(cell):
    assert {target.figure for target in TARGETS} <= cell["figures"].keys()


def test_a_figure_of_another_mode_is_not_taken(cell):
    assert rows([{**cell, "rule": "shadow"}])[0]["value"] is None


@pytest.mark.parametrize("group", targets.GROUPS.values())
def test_every_cell_of_a_group_can_be_played(group, tmp_path):
    cells = list(group())
    assert len(cells) == len(largest(cells))
    assert simulate(cells[-1], 1, 0.001, tmp_path)["workloads"] <= 2


def test_results_are_kept_with_their_targets(cell, tmp_path):
    path = tmp_path / "targets.json"
    keep(cell, path)
    keep({**cell, "stress": "walk"}, path)
    keep({**cell, "judge": "new"}, path)
    kept = json.loads(path.read_text())
    assert ["new", cell["judge"]] == [one["judge"] for one in kept["cells"]]
    assert len(TARGETS) == len(table(kept["targets"]).splitlines()) - 1
