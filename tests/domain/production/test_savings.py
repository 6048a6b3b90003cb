"""Savings so far: against the rolling baseline, and nothing made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.production.savings import savings_so_far
from compilegate.domain.records.runs import ProductionRun
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

    assert 432 - 316 == savings_so_far([first, *grown, mine]).saved_usd
    last_five = (216 + 4 * 432) / 5
    assert last_five - 316 == pytest.approx(savings_so_far([first, *grown[1:], mine]).saved_usd)


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
