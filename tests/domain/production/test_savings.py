"""Savings so far: against the rolling baseline, and nothing made up."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.production.savings import (
    Savings,
    applied,
    failed,
    metric_of,
    problem_of,
    run_savings,
    savings_so_far,
    total,
    wall_seconds_of,
    work_of,
)
from compilegate.domain.records.production import ProductionRun
from tests.domain.production.run_builder import production_run

Work = tuple[int, float | None, float | None]  # steps, samples and tokens a step
SAVED_HOURS = (21_600 - 15_800) / 3600


def test_a_candidates_run_saves_what_the_baseline_took_longer() -> None:
    savings = savings_so_far([production_run(0, "baseline"), production_run(1), production_run(2)])

    assert (2, 2, 0, 0, 2) == (
        savings.runs, savings.compared_runs, savings.failed_runs, savings.unknown_runs,
        savings.priced_runs,
    )  # fmt: skip
    assert savings.saved_hours == pytest.approx(2 * SAVED_HOURS)
    assert 2 * (216 - 158) == savings.saved_usd
    assert 58 == savings.usd_per_run


def test_before_production_has_made_a_baseline_run_nothing_is_booked() -> None:
    alone = savings_so_far([production_run(0)])

    assert (1, 0, 0.0, None) == (
        alone.unknown_runs, alone.compared_runs, alone.saved_hours, alone.saved_usd,
    )  # fmt: skip


def test_the_baseline_rolls_so_that_a_job_that_grew_is_no_loss_of_the_candidates() -> None:
    first = production_run(0, "baseline")
    grown = [production_run(n, "baseline", wall_seconds=43_200.0, usd=432.0) for n in range(1, 6)]
    mine = production_run(9, wall_seconds=31_600.0, usd=316.0)

    five, four = savings_so_far([first, *grown, mine]), savings_so_far([first, *grown[1:], mine])

    assert (432 - 316, (43_200 - 31_600) / 3600) == (five.saved_usd, five.saved_hours)
    assert (216 + 4 * 432) / 5 - 316 == pytest.approx(four.saved_usd)
    assert (21_600 + 4 * 43_200) / 5 - 31_600 == pytest.approx(four.saved_hours * 3600)


def test_later_baseline_runs_do_not_rewrite_what_a_run_has_saved() -> None:
    runs = [production_run(0, "baseline"), production_run(1)]
    later = production_run(2, "baseline", wall_seconds=15_800.0, usd=1.0)

    assert savings_so_far(runs) == savings_so_far([*runs, later])


def test_a_crashed_run_is_booked_with_what_it_cost() -> None:
    crash = production_run(
        1, finished=False, metric=None, wall_seconds=None, billable_seconds=3600.0
    )
    savings = savings_so_far([production_run(0, "baseline"), crash])

    assert (1, 0, -1.0, -158.0) == (
        savings.failed_runs, savings.compared_runs, savings.saved_hours, savings.saved_usd,
    )  # fmt: skip


def test_a_run_without_a_price_or_a_time_is_counted_and_not_guessed() -> None:
    runs = [production_run(0, "baseline"), production_run(1, usd=None), production_run(2)]
    untimed = production_run(3, wall_seconds=None, usd=None)
    savings = savings_so_far([*runs, untimed])

    assert (3, 2, 1, 1) == (
        savings.runs, savings.compared_runs, savings.unknown_runs, savings.priced_runs,
    )  # fmt: skip
    assert 58 == savings.saved_usd


def test_a_baseline_on_another_machine_is_nothing_to_compare_with() -> None:
    runs = [production_run(0, "baseline", counts=False), production_run(1)]

    assert 1 == savings_so_far(runs).unknown_runs


def test_the_estimate_is_for_the_runs_that_were_compared() -> None:
    runs = [production_run(0, "baseline"), production_run(1), production_run(2, finished=False)]
    savings = savings_so_far(runs, usd_per_run=50.0)

    assert 50.0 == savings.expected_usd
    assert savings.share_of_estimate == pytest.approx((58 - 158) / 50)
    assert savings_so_far(runs).share_of_estimate is None


NONE = (0, None, None)


@pytest.mark.parametrize(
    ("own", "baselines", "compared"),
    [
        ((2000, 32.0, None), [(2000, 32.0, None)], 1),
        ((1000, 64.0, None), [(2000, 32.0, None)], 1),
        ((1920, 32.0, None), [(2000, 32.0, None)], 1),
        ((1850, 32.0, None), [(2000, 32.0, None)], 0),
        ((1000, 32.0, None), [(2000, 32.0, None)], 0),
        ((2000, 16.0, None), [(2000, 32.0, None)], 0),
        ((2000, None, None), [(2000, 32.0, None)], 0),
        ((1000, None, None), [(2000, None, None)], 0),
        ((1950, None, None), [(2000, None, None)], 1),
        ((1000, 32.0, None), [(2000, None, None)], 0),
        # Tokens go with the order of the data.
        ((2000, 32.0, 3650.0), [(2000, 32.0, 4000.0)], 1),
        ((2000, 32.0, 3550.0), [(2000, 32.0, 4000.0)], 0),
        ((2000, 32.0, None), [(2000, 32.0, 4000.0)], 0),
        # Nothing is known of what was done, and what recorded nothing makes no less of the others.
        (NONE, [NONE], 0),
        ((2000, 32.0, None), [NONE], 0),
        (NONE, [(2000, 32.0, None)], 0),
        ((1000, 32.0, None), [NONE, (2000, 32.0, None)], 0),
        ((2000, 16.0, None), [(2000, None, None), (2000, 32.0, None)], 0),
    ],
)
def test_a_run_on_fewer_samples_saved_nothing_that_could_be_booked(
    own: Work, baselines: list[Work], compared: int
) -> None:
    def made(number: int, arm: str, work: Work) -> ProductionRun:
        run = production_run(number, arm)
        recorded = dict(zip(("steps", "samples_per_step", "tokens_per_step"), work, strict=True))
        return replace(run, result={**run.result, "work": recorded})

    made_before = [made(number, "baseline", work) for number, work in enumerate(baselines)]
    savings = savings_so_far([*made_before, made(9, "compile", own)])

    assert (compared, 1 - compared) == (savings.compared_runs, savings.unknown_runs)
    assert (58 if compared else None) == savings.saved_usd


@pytest.mark.parametrize(("lines", "said"), [(2000, 1000), (0, 1000), (1000, 2000)])
def test_of_the_lines_and_a_runs_own_word_the_fewer_steps_count(lines: int, said: int) -> None:
    base, mine = production_run(0, "baseline"), production_run(1)
    runs = [
        replace(run, result={**run.result, "work": {"steps": steps}, "steps": word})
        for run, steps, word in ((base, 2000, 2000), (mine, lines, said))
    ]

    assert savings_so_far(runs).saved_usd is None


def did(number: int, arm: str, steps: float, samples: float = 0.0, **changed: Any) -> ProductionRun:
    """A run that did so many steps, of so many samples."""
    run = production_run(number, arm, **changed)
    return replace(
        run, result={**run.result, "work": {"steps": steps, "samples_per_step": samples}}
    )


def test_work_is_compared_with_that_of_the_latest_five_baselines() -> None:
    grown = [did(n, "baseline", 2000) for n in range(1, 6)]
    shrunk = [did(0, "baseline", 100), *grown, did(9, "compile", 1890)]

    assert 1 == savings_so_far(shrunk).unknown_runs


@pytest.mark.parametrize(
    ("own", "steps", "samples", "compared"),
    [
        (1900.0, 2000.0, 0.0, 1), (1899.0, 2000.0, 0.0, 0),
        (1900.0, 2000.0, 8.0, 1), (1899.0, 2000.0, 8.0, 0),
    ],
)  # fmt: skip
def test_exactly_the_least_share_is_as_much_work(
    own: float, steps: float, samples: float, compared: int
) -> None:
    runs = [did(0, "baseline", steps, samples), did(1, "compile", own, samples)]

    assert compared == savings_so_far(runs).compared_runs


def test_a_baseline_that_crashed_or_lacks_a_figure_is_none_to_compare_that_with() -> None:
    sound = production_run(0, "baseline", wall_seconds=20_000.0, usd=200.0)
    crashed = production_run(1, "baseline", finished=False, wall_seconds=1.0, usd=1.0)
    untimed = production_run(2, "baseline", wall_seconds=None, usd=300.0)
    unpriced = production_run(3, "baseline", wall_seconds=30_000.0, usd=None)
    mine = production_run(9, wall_seconds=3_600.0, usd=36.0)
    savings = savings_so_far([sound, crashed, untimed, unpriced, mine])

    assert ((25_000 - 3_600) / 3600, 250 - 36) == (savings.saved_hours, savings.saved_usd)


def test_only_runs_that_ended_since_then_are_booked_and_earlier_baselines_serve() -> None:
    runs = [
        production_run(0, "baseline"), did(1, "compile", 1), production_run(2), production_run(3),
        production_run(4, finished=False), did(5, "compile", 1),
    ]  # fmt: skip
    work = replace(runs[0], result={**runs[0].result, "work": {"steps": 2000}})
    runs[0] = work
    figures = ("runs", "compared_runs", "failed_runs", "unknown_runs", "priced_runs")

    def booked(since: float) -> tuple[int, ...]:
        savings = savings_so_far(runs, since=since)
        return tuple(getattr(savings, name) for name in figures)

    assert (5, 2, 1, 2, 3) == booked(-math.inf)
    assert list(run_savings(runs)) == list(run_savings(runs, since=-math.inf))
    assert (3, 1, 1, 1, 2) == booked(runs[3].ended_at)
    assert (2, 0, 1, 1, 1) == booked(runs[3].ended_at + 1)
    assert (1, 0, 0, 1, 0) == booked(runs[5].ended_at)
    assert (0, 0, 0, 0, 0) == booked(runs[5].ended_at + 1)


def test_a_failed_run_is_no_less_work_and_has_no_figure_that_it_lacks() -> None:
    crash = did(1, "compile", 1, finished=False, usd=None, billable_seconds=None)
    savings = savings_so_far([did(0, "baseline", 2000), crash], usd_per_run=5.0)

    assert (1, 0, 0, 0.0, None, 0.0) == (
        savings.failed_runs, savings.unknown_runs, savings.priced_runs, savings.saved_hours,
        savings.saved_usd, savings.expected_usd,
    )  # fmt: skip
    assert (None, None) == (savings.usd_per_run, savings.share_of_estimate)


@pytest.mark.parametrize(
    ("saved", "expected", "share"),
    [(6.0, 4.0, 1.5), (None, 4.0, None), (6.0, None, None), (6.0, 0.0, None)],
)
def test_a_share_needs_both_and_an_estimate_above_nothing(
    saved: float | None, expected: float | None, share: float | None
) -> None:
    assert share == Savings(9, 4, 2, 3, 3, 1.0, saved, expected).share_of_estimate
    assert (None if saved is None else 2.0) == Savings(
        9, 4, 2, 3, 3, 1.0, saved, expected
    ).usd_per_run


def test_several_promotions_add_up_and_their_estimates_only_where_each_has_one() -> None:
    first = Savings(9, 4, 2, 3, 5, 1.5, 6.0, 10.0)
    second = Savings(20, 7, 12, 1, 8, 2.0, None, 30.0)
    idle = Savings(3, 0, 1, 2, 0, 0.5, 4.0, None)
    unestimated = Savings(1, 1, 0, 0, 1, 0.0, 1.0, None)

    assert Savings(32, 11, 15, 6, 13, 4.0, 10.0, 40.0) == total([first, second, idle])
    assert Savings(10, 5, 2, 3, 6, 1.5, 7.0, None) == total([first, unestimated])
    assert Savings(3, 0, 1, 2, 0, 0.5, 4.0, None) == total([idle])
    assert total([second]).saved_usd is None


# What a run recorded is read in one way, whatever stands in the ledger.


@pytest.mark.parametrize(
    ("recorded", "metric", "wall"),
    [
        ({"metric": 0, "wall_seconds": 0.5}, 0.0, 0.5),
        ({"metric": None, "wall_seconds": 0}, None, None),
        ({"metric": float("nan"), "wall_seconds": float("inf")}, None, None),
        ({"metric": "0.9", "wall_seconds": -1.0}, None, None),
        ({"metric": True, "wall_seconds": 10**400}, None, None),
        ({}, None, None),
    ],
)
def test_a_figure_is_a_finite_number_or_unknown(
    recorded: dict[str, Any], metric: float | None, wall: float | None
) -> None:
    run = dataclasses.replace(production_run(1), result=recorded)

    assert (metric, wall) == (metric_of(run), wall_seconds_of(run))


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
def test_a_run_failed_by_its_status_or_its_own_record(
    status: str, result: dict[str, Any], expected: bool
) -> None:
    assert expected == failed(dataclasses.replace(production_run(1), status=status, result=result))


def test_the_problem_is_the_ledgers_then_the_runs_own() -> None:
    run = dataclasses.replace(production_run(1), reason=None, result={"reason": "loss is nan."})

    assert "loss is nan" == problem_of(run)
    assert "stopped" == problem_of(dataclasses.replace(run, reason="stopped."))
    assert not problem_of(dataclasses.replace(run, result={}))


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
def test_work_is_the_fewer_steps_with_what_each_held(
    result: dict[str, Any], work: tuple[float, ...] | None
) -> None:
    assert work == work_of(dataclasses.replace(production_run(1), result=result))


@pytest.mark.parametrize(("recorded", "expected"), [(True, True), (False, False), (None, False)])
def test_a_change_was_applied_where_the_run_says_so(recorded: object, expected: bool) -> None:
    run = dataclasses.replace(production_run(1), result={"applied": recorded})

    assert expected is applied(run)
