import json

import numpy as np
import pytest
from scipy import stats

from benchmarks.decision.__main__ import keep, table
from benchmarks.decision.cells import Cell, percent_of, play_workload, run, share
from benchmarks.decision.naive import Article, runs_needed, welch
from benchmarks.decision.played import played
from benchmarks.decision.portfolio import draw
from benchmarks.decision.rules import NAIVE, play
from benchmarks.decision.truth import BASELINE
from benchmarks.decision.world import World

CELL = Cell(workloads=6, rules=("hybrid", *NAIVE))


def silent(_):
    return None


def test_a_cell_is_the_same_whatever_the_number_of_processes():
    assert run(CELL, 1, silent) == run(CELL, 2, silent)


def test_a_stopped_simulation_goes_on_where_it_was_and_ends_the_same(tmp_path):
    whole = played(CELL, 1, tmp_path / "whole")
    played(CELL.of(0.5), 1, tmp_path / "parts")
    (place,) = (tmp_path / "parts").rglob("*.jsonl")
    place.write_text(place.read_text() + '{"index": 3, "outco')  # cut off
    assert whole == played(CELL, 2, tmp_path / "parts")
    assert 6 == sum(bool(line.endswith("}")) for line in place.read_text().splitlines())
    assert [outcome for index in range(6) for outcome in play_workload(CELL, index)] == whole


def test_the_spread_may_be_fixed():
    workload = draw(np.random.default_rng(1), "loss 0.5", candidates=1, spread=0.7)
    assert (0.35, 0.25) == (workload.spread, workload.candidates[0].loss)


def test_another_seed_is_another_cell():
    assert play_workload(CELL, 0) != play_workload(Cell(seed=2), 0)


def test_the_first_workloads_of_a_longer_run_are_the_shorter_run():
    longer = Cell(workloads=600, rules=CELL.rules)
    assert play_workload(CELL, 4) == play_workload(longer, 4)


def test_the_article_is_its_own_hundred_per_cent():
    result = run(CELL, 1, silent)["rules"]
    assert 100 == result["article"]["gpu_hours"]["percent"]
    assert 0 == result["article"]["gpu_hours"]["se"]


@pytest.mark.parametrize("rule", ["shadow", "hybrid", "canary", *NAIVE])
def test_the_account_adds_up(rule):
    for index in range(4):
        workload = draw(np.random.default_rng(index), "mixed")
        outcome = play(rule, workload, np.random.default_rng(index))
        assert outcome.gpu_hours >= outcome.probe_gpu_hours >= 0
        assert outcome.redone_gpu_hours >= outcome.gpu_hours
        assert outcome.saved_redone_usd <= outcome.saved_usd <= outcome.oracle_usd
        assert outcome.promoted == (outcome.probation is not None)
        if not outcome.promoted:
            assert outcome.saved_usd <= 0 or outcome.bad_runs + outcome.weeks > 0


def test_shares_carry_their_standard_error():
    outcomes = play_workload(CELL, 0)
    assert {"percent": None, "se": None, "n": 0} == share([], lambda _: True)
    assert {"percent": 100.0, "se": 0.0, "n": len(outcomes)} == share(outcomes, lambda _: True)


def test_a_ratio_of_sums_has_no_error_where_every_ratio_is_the_same():
    figure = percent_of([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (50.0, 0.0, 3) == (figure["percent"], figure["se"], figure["n"])


def test_a_ratio_of_sums_agrees_with_the_spread_of_repeated_samples():
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(400):
        wholes = rng.lognormal(size=200)
        draws.append(percent_of(list(wholes * rng.uniform(0, 1, 200)), list(wholes)))
    spread = np.std([draw["percent"] for draw in draws])
    assert pytest.approx(spread, rel=0.15) == np.mean([draw["se"] for draw in draws])


def test_results_of_a_cell_replace_its_older_ones(tmp_path):
    path = tmp_path / "results.json"
    result = run(CELL, 1, silent)
    keep({**result, "workloads": 1}, path)
    keep({**result, "stress": "t5"}, path)
    keep(result, path)
    cells = json.loads(path.read_text())["cells"]
    assert [("none", 6), ("t5", 6)] == [(cell["stress"], cell["workloads"]) for cell in cells]


def test_the_table_has_a_column_for_every_rule():
    text = table(run(CELL, 1, silent))
    assert all(rule in text for rule in CELL.rules)


def test_the_article_to_the_letter_rejects_what_differs_either_way():
    world = World(draw(np.random.default_rng(1), "all_good"), np.random.default_rng(1))
    base = world.shadow_run(BASELINE, 1)
    fast, better = base.hours / 1.4, base.metric + 0.3
    run_of = type(base)
    candidate = [run_of(metric=better, hours=fast)]
    assert not Article(world, "letter")._accepts([base], candidate)
    assert Article(world, "one_sided")._accepts([base], candidate)


@pytest.mark.parametrize("ratio", [0.4, 0.6, 0.8])
def test_the_textbook_plans_the_runs_that_reach_its_power(ratio):
    def power(n):
        df, shift = 2 * (n - 1), 1 / (ratio * np.sqrt(2 / n))
        return stats.nct.sf(stats.t.ppf(0.95, df), df, shift)

    n = runs_needed(ratio, 0.05)
    assert power(n) >= 0.9 > power(n - 2)


def test_welch_agrees_with_scipy():
    ours, theirs = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.5]
    expected = stats.ttest_ind(ours, theirs, equal_var=False)
    assert pytest.approx((expected.statistic, expected.df)) == welch(ours, theirs)
