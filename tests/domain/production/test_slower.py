"""A speed-up that is lost after a promotion became permanent, by the baseline's runs."""

from __future__ import annotations

import math

import pytest

from compilegate.domain.production.slower import LEAST_ERROR, LIMIT, speed_sum
from compilegate.domain.records.production import ProductionRun, SpeedSum
from tests.domain.production.run_builder import production_run

SPEEDUP, WALL = 1.25, 10_000.0
NOW = 1_800_000_000


def runs(arms: str, faster: float = SPEEDUP, days: int = 1) -> list[ProductionRun]:
    """A run every so many days, 1 % longer each time; ``b`` is the baseline's."""
    return [
        production_run(
            place * days, "baseline" if arm == "b" else "compile",
            wall_seconds=WALL * 1.01**place / (1 if arm == "b" else faster),
        )
        for place, arm in enumerate(arms)
    ]  # fmt: skip


def sum_of(made: list[ProductionRun], before: SpeedSum | None = None) -> SpeedSum | None:
    return speed_sum(before, made, "compile", SPEEDUP, now=NOW)


@pytest.mark.parametrize(("faster", "steps"), [(1.0, 0.75), (math.sqrt(SPEEDUP), 0.25)])
def test_each_baseline_run_adds_the_evidence_of_a_fall(faster, steps):
    """By the formula, of runs without any chance: Wald's ratio of half of the logarithm."""
    more = runs("ccccccccbccc" + "cccccbccc", faster)
    made = more[:12]
    log = math.log(SPEEDUP)

    first = sum_of(made)

    assert first.total == pytest.approx(log / 2 * log * steps / LEAST_ERROR**2)
    assert (NOW if first.total > LIMIT else None) == first.lost_at
    second = speed_sum(first, more, "compile", SPEEDUP, now=NOW + 9)
    assert (2 * first.total, more[17].run) == (pytest.approx(second.total), second.run)
    assert (first.lost_at or NOW + 9) == second.lost_at


@pytest.mark.parametrize(("total", "lost_at"), [(7.9, None), (8.1, NOW)])
def test_above_its_limit_the_sum_says_since_when(total, lost_at):
    """By runs that speak for neither."""
    neither = runs("ccccccccbccc", SPEEDUP**0.75)

    after = sum_of(neither, SpeedSum(total, "r"))

    assert (pytest.approx(total), lost_at) == (after.total, after.lost_at)


def test_the_sum_falls_again_where_the_speed_up_is_back_and_is_never_below_nothing():
    low = SpeedSum(LIMIT + 1, "r", NOW - 5)
    after = sum_of(runs("ccccccccbccc"), low)

    assert (0.0, None) == (after.total, after.lost_at)


@pytest.mark.parametrize(
    ("arms", "added"),
    [
        ("cccccccc" "bcc", False), ("cccccccc" "bccc", True),
        ("cccccccc" "bccccc", True), ("cccccccc" "bcccccc", False),
        ("bbbbbbbb", False), ("", False), ("bccc", True), ("ccb" "cccc" "bcc", False),
    ],
)  # fmt: skip
def test_a_baseline_run_counts_once_a_few_runs_have_followed_it(arms, added):
    made = runs(arms, 1.0)
    after = sum_of(made)

    assert added is (after is not None)
    assert after == sum_of(made, after)


def test_only_sound_runs_of_both_arms_near_the_baselines_tell():
    before = SpeedSum(1.0, "r")
    made = runs("ccccccccbccc", 1.0)
    odd = [
        production_run(13, "other"), production_run(14, counts=False),
        production_run(15, finished=False), production_run(16, wall_seconds=None),
        production_run(17, "baseline", counts=False),
    ]  # fmt: skip

    assert sum_of(made) == sum_of([*made[:9], *odd, *made[9:]])
    other = production_run(7, "baseline", wall_seconds=3 * WALL)
    assert sum_of(made) == sum_of([*made[:8], other, *made[8:]])
    assert before == sum_of(runs("cccc"), before)
    assert before == speed_sum(before, made, "compile", None, now=NOW)
    assert before == speed_sum(before, made, "compile", 1.0, now=NOW)
    # One run in three weeks: two of them are near, which say nothing.
    assert before == sum_of(runs("ccccccccbccc", 1.0, days=21), before)
    longer = runs("cccccccc" * 2 + "bccc", 1.0)
    assert sum_of(longer[8:]) == sum_of([*runs("cccccccc", 3.0), *longer[8:]])


@pytest.mark.parametrize(("weeks", "counts"), [(4, True), (5, False)])
def test_a_run_is_compared_with_those_of_four_weeks_around_it(weeks, counts):
    made = runs("ccccccccbccc", 1.1, days=7)
    other = list(made)
    other[8 - weeks] = production_run(7 * (8 - weeks), wall_seconds=2 * WALL)

    assert counts is (sum_of(made) != sum_of(other))
