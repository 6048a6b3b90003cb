"""The study: its cells, and what is computed of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.decision import study
from benchmarks.decision.article import accepts
from benchmarks.decision.play import ARTICLE, MODES, play
from benchmarks.decision.played import play_workload, played
from benchmarks.decision.portfolio import draw
from benchmarks.decision.screening import FALSE_ALARMS, Screening
from benchmarks.decision.study import Cell, figures, percent_of
from benchmarks.decision.world import FullRun

CELL = Cell("mixed, hybrid", 4)
CELLS = {cell.name: cell for cell in study.cells()}


def test_a_stopped_simulation_goes_on_where_it_was_and_ends_the_same(tmp_path: Path) -> None:
    whole = played(CELL, 1, tmp_path / "whole")
    played(CELL.of(0.5), 1, tmp_path / "parts")
    (place,) = (tmp_path / "parts").rglob("*.jsonl")
    place.write_text(place.read_text() + '{"index": 2, "outco')  # cut off

    assert whole == played(CELL, 2, tmp_path / "parts")
    assert 4 == sum(bool(line.endswith("}")) for line in place.read_text().splitlines())
    assert [play_workload(CELL, index) for index in range(4)] == whole


@pytest.mark.parametrize("mode", [*MODES, ARTICLE])
def test_the_account_adds_up(mode: str) -> None:
    for index in range(4):
        workload = draw(np.random.default_rng(index), "mixed")
        outcome = play(mode, workload, np.random.default_rng(index), Screening())

        assert 0 <= outcome.gpu_hours
        assert outcome.saved_usd <= outcome.oracle_usd <= outcome.most_usd or outcome.promoted
        assert outcome.good_ended_worse <= outcome.good_arms
        assert not (outcome.reverted or outcome.promoted_bad) or outcome.promoted


def test_before_and_after_play_the_same_workloads() -> None:
    """The strict cell of each differs in nothing but the policy."""
    for name, cell in CELLS.items():
        if f"{name}, strict" in CELLS:
            before = {**CELLS[f"{name}, strict"].key, "strict": False}
            assert cell.key == before


def test_what_is_saved_and_what_is_lost_is_what_an_oracle_saves() -> None:
    outcomes = [play_workload(CELL, index) for index in range(6)]
    computed = figures(outcomes, outcomes)
    gone = sum(float(one["percent"] or 0) for one in computed["lost"].values())

    assert any(one.promoted for one in outcomes)
    assert any(one.has_good and not one.promoted for one in outcomes)
    assert pytest.approx(100 - computed["net_saving_by_runs"]["percent"]) == gone
    assert len(outcomes) == sum(row["saved"]["n"] for row in computed["by_runs_left"])


def test_a_ratio_of_sums_agrees_with_the_spread_of_repeated_samples() -> None:
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(400):
        wholes = rng.lognormal(size=200)
        draws.append(percent_of(list(wholes * rng.uniform(0, 1, 200)), list(wholes)))
    spread = np.std([float(draw["percent"] or 0) for draw in draws])

    assert pytest.approx(spread, rel=0.15) == np.mean([float(draw["se"] or 0) for draw in draws])


def test_the_article_rejects_what_differs_either_way_and_what_is_slow() -> None:
    base = [FullRun(metric=80.0, hours=1.4)]
    assert accepts(base, [FullRun(metric=80.05, hours=1.0)])
    assert not accepts(base, [FullRun(metric=80.3, hours=1.0)])
    assert not accepts(base, [FullRun(metric=79.7, hours=1.0)])
    assert not accepts(base, [FullRun(metric=80.0, hours=1.3)])


# The simulated equivalence check.


def test_faults_are_caught_but_for_rho_and_sound_arms_but_for_the_false_alarms() -> None:
    rng, screening = np.random.default_rng(1), Screening(rho=0.2)
    sound, faulty = draw(rng, "all_good").arms[1], draw(rng, "boundary_quality").arms[1]
    n = 20_000

    assert pytest.approx(0.8, abs=0.01) == np.mean(
        [screening.catches(faulty, rng) for _ in range(n)]
    )
    alarms = np.mean([screening.catches(sound, rng) for _ in range(n)])
    assert pytest.approx(FALSE_ALARMS, abs=0.003) == alarms
