"""What runs saved: against the baseline's runs near them in time, and nothing made up."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.economics import micro_usd
from compilegate.domain.production.ratio import Point, ratio_of
from compilegate.domain.production.savings import (
    RunSaving,
    Savings,
    compiled_anew,
    failed,
    forgone_savings,
    metric_of,
    problem_of,
    run_savings,
    saving_of,
    sum_of,
    total,
    wall_seconds_of,
    work_of,
)
from compilegate.domain.records.production import ProductionRun
from tests.domain.production.run_builder import BEGIN, DAY, production_run

Work = tuple[int, float | None, float | None]  # steps, samples and tokens a step
SAVED = 216 - 158


def in_turns(number: int, **changed: Any) -> list[ProductionRun]:
    """So many runs, one a day, the baseline's first."""
    return [
        production_run(day, "compile" if day % 2 else "baseline", **changed)
        for day in range(number)
    ]


def counted(savings: Savings) -> tuple[int, ...]:
    """Runs, and of them those compared, failed, unknown and priced."""
    return (
        savings.runs, savings.compared_runs, savings.failed_runs, savings.unknown_runs,
        savings.priced_runs,
    )  # fmt: skip


@pytest.mark.parametrize("runs", [
    [production_run(0)],
    in_turns(3),
    [production_run(day, "baseline" if day < 3 else "compile") for day in range(3)],
])  # fmt: skip
def test_without_runs_enough_to_tell_arms_from_growth_and_chance_nothing_is_booked(
    runs,
):
    savings = saving_of(runs)

    assert (savings.runs, 0, None) == (savings.unknown_runs, savings.micro_usd, savings.saved_usd)


def test_two_candidates_are_compared_each_with_the_baseline():
    theirs = [production_run(day, "other", usd=108.0) for day in (2, 4, 6)]
    runs = sorted([*in_turns(8), *theirs], key=lambda run: run.started_at)

    saved = {(one.run.arm, round(one.usd or 0, 6)) for one in run_savings(runs)}

    assert {("compile", 58.0), ("other", 108.0)} == saved


@given(
    noise=st.lists(st.floats(-0.1, 0.1), min_size=120, max_size=120),
    cuts=st.lists(st.integers(0, 120 * DAY), max_size=4),
)
def test_sums_over_any_parts_are_that_of_the_whole(noise, cuts):
    runs = [
        replace(run, usd=run.usd * math.exp(one))
        for run, one in zip(in_turns(120), noise, strict=True) if run.usd
    ]  # fmt: skip
    bounds = [-math.inf, *(runs[0].started_at + cut for cut in sorted(cuts)), math.inf]

    parts = [saving_of(runs, *both) for both in pairwise(bounds)]

    assert saving_of(runs) == total(parts)


def test_a_crashed_run_is_booked_with_what_it_cost():
    crash = production_run(5, finished=False, metric=None, wall_seconds=None)
    unpriced = production_run(6, finished=False, usd=None)
    savings = saving_of([*in_turns(4), crash, unpriced], usd_per_run=50.0)

    assert (4, 2, 2, 0, 3) == counted(savings)
    assert (2 * SAVED - 158, 100.0) == (savings.saved_usd, savings.expected_usd)
    assert (2 * SAVED - 158) / 100 == savings.share_of_estimate
    assert saving_of([crash]).saved_usd == -158


def test_what_lacks_a_price_or_is_no_evidence_is_counted_and_compares_nothing():
    odd = [
        production_run(5, usd=None), production_run(6, "baseline", counts=False, usd=1.0),
        production_run(7, "baseline", finished=False, usd=1.0),
        production_run(8, "baseline", usd=0.0), production_run(9, counts=False),
    ]  # fmt: skip
    savings = saving_of([*in_turns(4), *odd])

    assert (4, 3, 0, 1, 3) == counted(savings)
    assert 3 * SAVED == savings.saved_usd


@pytest.mark.parametrize("usd", [-5.0, math.nan, 1e9])
def test_what_is_no_price_is_unknown_and_compares_nothing(usd):
    odd = [production_run(5, usd=usd), production_run(6, "baseline", usd=usd)]
    crash = production_run(7, finished=False, usd=usd)
    savings = saving_of([*in_turns(4), *odd, crash])

    assert (4, 2, 1, 1, 2) == counted(savings)
    assert 2 * SAVED == savings.saved_usd


NONE = (0, None, None)


@pytest.mark.parametrize(
    ("own", "baseline", "compared"),
    [
        ((2000, 32.0, None), (2000, 32.0, None), 1),
        ((1000, 64.0, None), (2000, 32.0, None), 1),
        ((1900, 32.0, None), (2000, 32.0, None), 1),
        ((1899, 32.0, None), (2000, 32.0, None), 0),
        ((2000, None, None), (2000, 32.0, None), 0),
        ((1900, None, None), (2000, None, None), 1),
        ((1899, None, None), (2000, None, None), 0),
        # Tokens go with the order of the data.
        ((2000, 32.0, 3650.0), (2000, 32.0, 4000.0), 1),
        ((2000, 32.0, 3550.0), (2000, 32.0, 4000.0), 0),
        ((2000, 32.0, None), (2000, 32.0, 4000.0), 0),
        (NONE, (2000, 32.0, None), 0),
        ((2000, 32.0, None), NONE, 0),
    ],
)
def test_a_run_on_fewer_samples_saved_nothing_that_could_be_booked(own, baseline, compared):
    runs = [did(run, own if run.arm == "compile" else baseline) for run in in_turns(6)]
    savings = saving_of(runs)

    assert (3, 3 * compared, 0, 3 - 3 * compared, 3 * compared) == counted(savings)
    # A single one is no measure of the others.
    one = saving_of([run if place == 3 else did(run, baseline) for place, run in enumerate(runs)])
    sound = work_of(runs[0]) != (0, 0, 0)
    assert (2 + compared if sound else 0) == one.compared_runs


def did(run: ProductionRun, work: Work) -> ProductionRun:
    """The run with so many steps, of so many samples and tokens."""
    recorded = dict(zip(("steps", "samples_per_step", "tokens_per_step"), work, strict=True))
    return replace(run, result={**run.result, "work": recorded})


def test_a_job_that_shrinks_does_its_whole_work_where_the_baseline_does_too():
    def sized(run: ProductionRun, steps: int) -> ProductionRun:
        return did(run, (steps, 32.0, None))

    weeks = [production_run(7 * week, "compile" if week % 8 else "baseline") for week in range(17)]
    steadily = [sized(run, round(2000 * 0.985**week)) for week, run in enumerate(weeks)]
    at_once = [sized(run, 2000 if week < 12 else 1000) for week, run in enumerate(weeks)]
    # Not known before a baseline run has shrunk with it, and never of one that did less alone.
    alone = [*at_once[:5], sized(weeks[5], 1000), *at_once[6:]]

    assert [0, 0, 4, 1] == [
        saving_of(runs).unknown_runs for runs in (steadily, at_once, at_once[:16], alone)
    ]


@pytest.mark.parametrize(("lines", "said"), [(2000, 1000), (0, 1000), (1000, 2000)])
def test_of_the_lines_and_a_runs_own_word_the_fewer_steps_count(lines, said):
    runs = [
        replace(run, result={**run.result, "work": {"steps": steps}, "steps": word})
        for run in in_turns(6)
        for steps, word in [(lines, said) if run.arm == "compile" else (2000, 2000)]
    ]

    assert saving_of(runs).saved_usd is None


def test_the_interval_is_that_of_the_normal_distribution():
    savings = Savings(micro_usd=2_000_000_000, se_micro_usd=1_000_000_000, priced_runs=1)

    assert (2000 - 1644.85363, 2000 + 1644.85363) == pytest.approx(savings.interval_usd, abs=1e-4)
    assert None is Savings(expected_usd=5.0).share_of_estimate
    assert 2000.0 == savings.to_dict()["saved_usd"]


def test_several_promotions_add_up_and_their_estimates_only_where_each_has_one():
    first = Savings(9, 4, 2, 3, 5, 6, 2, 7.0, 10.0)
    second = Savings(20, 7, 12, 1, 8, 3, 1, None, 30.0)
    idle = Savings(3, 0, 1, 2, 0, 4, 0, 9.0, None)
    unestimated = Savings(1, 1, 0, 0, 1, 1, 1)

    assert Savings(32, 11, 15, 6, 13, 13, 3, 9.0, 40.0) == total([first, second, idle])
    assert Savings(10, 5, 2, 3, 6, 7, 3, 7.0, None) == total([first, unestimated])
    assert Savings(3, 0, 1, 2, 0, 4, 0, 9.0, None) == total([idle])
    assert (Savings(), None, None) == (sum_of([]), idle.saved_usd, idle.share_of_estimate)


def test_what_a_run_saved_or_its_baseline_would_have_is_by_the_ratio_of_the_runs_around_it():
    """Not by one that was booked two weeks after the month's end."""
    runs = [
        replace(run, usd=(run.usd or 0) * 1.1 ** (day % 3)) for day, run in enumerate(in_turns(12))
    ]
    late = replace(production_run(3, "baseline", usd=1.0), at=BEGIN + 44 * DAY)
    ratio = ratio_of([
        Point(run.started_at, math.log(run.usd or 0), run.arm == "baseline") for run in runs
    ])  # fmt: skip
    held = [(runs[2], "compile"), (runs[2], "other"), (replace(runs[2], usd=None), "compile"),
            (production_run(2, "baseline", finished=False), "compile")]  # fmt: skip
    near, month = [*runs[:4], late, *runs[4:]], (BEGIN, BEGIN + 30 * DAY)

    assert ratio is not None
    cost, price = (runs[2].usd or 0) / math.exp(ratio.log), runs[2].usd or 0
    unknown = [RunSaving(run, None) for run, _ in held[1:]]
    saved = RunSaving(runs[2], micro_usd(price - cost), micro_usd(cost * ratio.se))
    assert [saved, *unknown] == forgone_savings(near, held, month)
    assert [] == forgone_savings(near, [], month)
    cost, price = runs[1].usd or 0, (runs[1].usd or 0) * math.exp(ratio.log)
    assert run_savings(near)[0] == RunSaving(
        runs[1], micro_usd(price - cost), micro_usd(price * ratio.se), runs[10].ended_at
    )
    assert 1 == saving_of(runs, runs[1].ended_at, runs[3].ended_at).runs


@pytest.mark.parametrize(("state", "why"), [(None, None), ("restored", None), ("stale", "stale")])
def test_a_bundle_that_was_not_restored_says_why(state, why):
    details = {"compile_bundle": {"state": state}} if state else {}
    assert why == compiled_anew(replace(production_run(1), details=details))


# What a run recorded is read in one way, whatever stands in the ledger.


def test_the_problem_is_the_ledgers_then_the_runs_own():
    run = replace(production_run(1), reason=None, result={"reason": "loss is nan."})

    assert "loss is nan" == problem_of(run)
    assert "stopped" == problem_of(replace(run, reason="stopped."))
    assert not problem_of(replace(run, result={}))


@pytest.mark.parametrize(
    ("status", "result", "expected"),
    [
        ("Completed", {"finished": True}, False),
        ("Completed", {}, False),  # it left no evidence, and its model is there
        ("Completed", {"finished": False}, True),
        ("Failed", {}, True),
        ("NotRun", {}, True),
    ],
)
def test_a_run_failed_by_its_status_or_its_own_record(status, result, expected):
    assert expected == failed(replace(production_run(1), status=status, result=result))


@pytest.mark.parametrize(
    ("result", "work"),
    [
        ({}, None),
        ({"work": "much"}, None),
        ({"work": {}}, (0.0, 0.0, 0.0)),
        ({"work": {}, "steps": 700}, (700.0, 0.0, 0.0)),
        ({"work": {"steps": 0, "samples_per_step": 3}, "steps": 700}, (700.0, 2100.0, 0.0)),
        ({"work": {"steps": 500, "samples_per_step": 3, "tokens_per_step": 7}, "steps": 700},
         (500.0, 1500.0, 3500.0)),
        ({"work": {"steps": 500, "tokens_per_step": 7}, "steps": 200}, (200.0, 0.0, 1400.0)),
    ],
)  # fmt: skip
def test_work_is_the_fewer_steps_with_what_each_held(result, work):
    assert work == work_of(replace(production_run(1), result=result))


@pytest.mark.parametrize(
    ("recorded", "metric", "wall"),
    [
        ({"metric": 0, "wall_seconds": 0.5}, 0.0, 0.5),
        ({"metric": float("nan"), "wall_seconds": float("inf")}, None, None),
        ({"metric": "0.9", "wall_seconds": -1.0}, None, None),
        ({"metric": True, "wall_seconds": 10**400}, None, None),
    ],
)
def test_a_figure_is_a_finite_number_or_unknown(recorded, metric, wall):
    run = replace(production_run(1), result=recorded)

    assert (metric, wall) == (metric_of(run), wall_seconds_of(run))
