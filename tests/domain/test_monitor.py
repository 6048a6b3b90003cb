"""The cumulative sum that alarms, and the sequential check of an alarm: Wald's ratio over pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import (
    CLEAR_AT,
    FALSE_ALARM,
    FIRST,
    LAST,
    REVERT_AT,
    TIE,
    Fall,
    Look,
    Monitor,
    Outcome,
    average_run_length,
    cusum_step,
    cusum_threshold,
    look,
    mean_fall,
    quality_monitor,
    speed_monitor,
    spread_of,
)
from tests.domain.evidence_builder import (
    BASE_WALL,
    MINE_WALL,
    arm,
    codes,
    probation_document,
    runs,
    watch,
)
from tests.domain.test_probation import follow

MARGIN = 1.0
FIGURES = st.lists(st.floats(-5, 5), min_size=2, max_size=LAST)


def checked(ours: list[float], theirs: list[float], known: float, *, last: bool) -> Outcome:
    fall = mean_fall(ours, theirs, earlier=None)
    assert fall is not None
    spread = spread_of(known, ours, theirs)
    return look(fall, shift=MARGIN, tolerated=MARGIN / 2, spread=spread, last=last).outcome


@given(FIGURES, FIGURES, st.floats(0.1, 3), st.floats(0.1, 3))
def test_the_ratio_is_the_sum_over_pairs(baseline, candidate, shift, spread):
    pairs = list(zip(baseline, candidate, strict=False))
    theirs, ours = ([pair[side] for pair in pairs] for side in (0, 1))
    by_pairs = math.fsum(shift * (b - c - shift / 2) / (2 * spread**2) for b, c in pairs)

    said = look(
        mean_fall(ours, theirs, earlier=None),
        shift=shift, tolerated=shift / 2, spread=spread, last=False,
    )  # fmt: skip

    assert pytest.approx(by_pairs, rel=1e-6, abs=1e-6) == said.ratio


def test_the_bounds_are_walds():
    assert pytest.approx(math.log(9.5)) == REVERT_AT
    assert pytest.approx(math.log(1 / 18)) == CLEAR_AT
    assert (3, 12) == (FIRST, LAST)


@pytest.mark.parametrize(
    ("ours", "theirs", "ratio"),
    [(3, 5, 4 * 0.75 / (0.25 * 8 / 15)), (5, 3, 4 * 0.75 / (0.25 * 8 / 15)),
     (3, 3, 4 * 0.75 / (0.25 * 2 / 3)), (5, 5, 4 * 0.75 / (0.25 * 2 / 5)),
     (2, 4.5, 4 * 0.75 / (0.25 * 13 / 18))],
)  # fmt: skip
def test_unequal_arms_count_by_the_runs_of_each(ours, theirs, ratio):
    fall = Fall(2.0, ours, theirs)
    said = look(fall, shift=4.0, tolerated=1.25, spread=0.5, last=False)

    assert Look(fall, 0.5, pytest.approx(ratio), Outcome.REVERT) == said


@pytest.mark.parametrize(
    ("fall", "shift", "tolerated", "last", "outcome"),
    [
        (Fall(3.0, 3, 3), MARGIN, MARGIN / 2, False, Outcome.REVERT),
        (Fall(0.7, 3, 3), MARGIN, MARGIN / 2, False, Outcome.OPEN),
        (Fall(0.5, 3, 3), MARGIN, MARGIN / 2, False, Outcome.OPEN),
        (Fall(-2.0, 3, 3), MARGIN, MARGIN / 2, False, Outcome.CLEAR),
        (Fall(0.7, 3, 3), MARGIN, MARGIN / 2, True, Outcome.REVERT),
        # What is tolerated, but for the last digit.
        (Fall(0.5 + 1e-12, 3, 3), MARGIN, MARGIN / 2, True, Outcome.CLEAR),
        (Fall(0.3, 3, 3), MARGIN, MARGIN / 2, True, Outcome.CLEAR),
        # At either bound: of two runs the ratio is shift times the fall beyond what is tolerated.
        (Fall(1.0, 2, 2), REVERT_AT, 0.0, False, Outcome.REVERT),
        (Fall(-1.0, 2, 2), -CLEAR_AT, 0.0, False, Outcome.CLEAR),
        # Within a tie, beyond it, and exactly there.
        (Fall(2 + 3e-9, 2, 2), 4.0, 2.0, True, Outcome.CLEAR),
        (Fall(2 + 5e-9, 2, 2), 4.0, 2.0, True, Outcome.REVERT),
        (Fall(4 * TIE, 2, 2), 4.0, 0.0, True, Outcome.CLEAR),
    ],
)
def test_a_fall_is_confirmed_cleared_or_left_open(fall, shift, tolerated, last, outcome):
    said = look(fall, shift=shift, tolerated=tolerated, spread=1.0, last=last)

    assert outcome == said.outcome


@pytest.mark.parametrize(
    ("known", "ours", "theirs", "spread"),
    [
        (1.0, [0.0, 0.1], [0.0, 0.1], 1.0),
        (1.0, [0.0, 2 * math.sqrt(2)], [], 2.0),
        (1.0, [], [0.0, 2 * math.sqrt(2)], 2.0),
        (0.1, [0.0, 2.0, 4.0], [5.0, 6.0], math.sqrt(8.5 / 3)),
        (0.5, [0.0], [1.0], 0.5),
    ],
    ids=["known", "of ours", "of theirs", "of both", "nothing to see"],
)
def test_what_its_own_runs_vary_by_counts_where_it_is_more_than_was_known(
    known, ours, theirs, spread
):
    assert pytest.approx(spread) == spread_of(known, ours, theirs)


def test_earlier_baseline_runs_count_only_where_the_check_has_none():
    assert Fall(1.0, 3, 2) == mean_fall([0.5, 1.0, 1.5], [1.5, 2.5], earlier=(9.0, 4.0))
    assert Fall(8.0, 3, 4.0) == mean_fall([0.5, 1.0, 1.5], [], earlier=(9.0, 4.0))
    assert mean_fall([0.0], [], earlier=None) is None
    assert mean_fall([], [1.0], earlier=(9.0, 4.0)) is None


def test_a_small_gain_that_is_gone_altogether_needs_no_more_pairs_than_a_large_one():
    """Promoted at 1.11x, where the bar is 1.10x; whole jobs of both arms take the same time now."""
    doc = probation_document(wall_sd=0.05)
    for run in runs(doc):
        run["wall_seconds"] = BASE_WALL / 1.11
    decision, made = follow(doc, mine=BASE_WALL / MINE_WALL)

    assert {"speedup_gone"} == codes(decision)
    assert 2 * FIRST >= made.count("baseline")


def reverted(loss: float, spread: float, *, known_df: int, paths: int = 3000) -> float:
    """Share of checks that revert, the known spread estimated with so many degrees of freedom."""
    rng = np.random.default_rng(11)
    count = 0
    for _ in range(paths):
        known = spread * math.sqrt(rng.chisquare(known_df) / known_df)
        theirs = list(rng.normal(0, spread, LAST))
        ours = list(rng.normal(-loss, spread, LAST))
        for pairs in range(FIRST, LAST + 1):
            outcome = checked(ours[:pairs], theirs[:pairs], known, last=pairs == LAST)
            if outcome is not Outcome.OPEN:
                break
        count += outcome is Outcome.REVERT
    return 100 * count / paths


@pytest.mark.slow
@pytest.mark.parametrize("known_df", [4, 26])
@pytest.mark.parametrize(
    ("loss", "spread", "low", "high"),
    [
        (0.0, 0.3, 0, 1.5), (0.0, 0.6, 3, 7), (0.0, 1.0, 9, 15),
        (0.5, 0.6, 48, 56), (0.75, 0.6, 80, 87), (1.0, 0.6, 95, 99), (1.0, 1.0, 86, 92),
    ],
)  # fmt: skip
def test_its_errors_are_what_the_page_says(loss, spread, low, high, known_df):
    assert low <= reverted(loss, spread, known_df=known_df) <= high


# The cumulative sum: its run length and its false alarms against simulation.


HISTORY, BASE, MINE = (900.0, 1000.0, 1100.0, 950.0), (1000.0, 1050.0, 980.0), (500.0, 550.0)
NEAR = math.log(1.2 * 1.25)


@pytest.mark.parametrize(
    ("walls", "proven", "spread", "gain"),
    [
        ((HISTORY, BASE, MINE), 1.7, None, None),
        (((), BASE, (*MINE, 700.0)), 1.7, None, None),
        # Too few to tell a spread, and some that hardly vary, a little faster than they have to be.
        (((), BASE, MINE), 1.7, 0.04, None),
        (((1600.0, 1600.1),) * 2 + ((1000.0,) * 3,), 1.7, 0.01, None),
        (((1510.0, 1510.1),) * 2 + ((1000.0,) * 3,), 1.7, 0.01, None),
        ((HISTORY, BASE, ()), 1.7, None, math.log(1.7)),
        (((), (), MINE), None, 0.04, math.log(1.4)),
    ],
)
def test_speed_is_watched_from_where_it_stood_for_all_gain_above_the_bar(
    walls, proven, spread, gain
):
    """A bar of 1.2 at 1.25 times the price."""
    doc = probation_document(policy={"min_proven_speedup": 1.2, "min_mean_speedup": 1.4})
    history, base, mine = walls
    doc["quality"]["history_wall_seconds"] = list(history)
    arm(doc)["usd_per_hour"] = 1.25 * doc["usd_per_hour"]
    for name, own in (("baseline", base), ("compile", mine)):
        for run, seconds in zip(runs(doc, name), (*own, None, None, None), strict=False):
            run["wall_seconds"] = seconds
    seen = speed_monitor(evidence := read_evidence(doc), evidence.promoted_arm, proven)
    logs = [[-math.log(seconds) for seconds in own] for own in walls]
    df = sum(len(own) - 1 for own in logs if own)
    pooled = math.sqrt(sum(float(np.var(own)) * len(own) for own in logs if own) / df)
    old = logs[0] + logs[1]
    gain = float(np.mean(logs[2]) - np.mean(old)) if gain is None else gain

    assert seen.old == old
    assert pytest.approx((spread or pooled, gain, -NEAR)) == (
        seen.spread, seen.level, seen.tolerated,
    )  # fmt: skip
    assert pytest.approx((max(gain - NEAR, 0.02), max(gain - NEAR, 0.1))) == (
        seen.shift, seen.checked_shift,
    )  # fmt: skip


OLD = [1.0, 2.0, 3.0, 2.0]


@pytest.mark.parametrize(
    ("new", "reference"),
    [([], 2.25), ([2.0, 2.5], 12.5 / 6 + 0.25), ([9.0], 3.4 + 0.25),
     # 13 spreads off: earlier runs count by 1/(1/4 + 13^2).
     ([8.0, 9.0], (2 / 169.25 + 17) / (1 / 169.25 + 2) + 0.25)],
)  # fmt: skip
def test_runs_of_before_count_less_once_two_since_contradict_them(new, reference):
    seen = Monitor("", "", lambda run: run.metric, OLD, 0.5, 1.0, 1.0, 0.5, 0.25, 12, new=new)

    assert pytest.approx(reference) == seen.reference


def test_a_run_is_seen_that_has_a_figure_beside_a_reference_that_varies():
    doc = watch({**probation_document(), "promoted": "compile"}, metric=0.75)
    doc["quality"]["goal"] = "minimize"
    evidence = read_evidence(doc)
    seen, (run,) = quality_monitor(evidence, evidence.promoted_arm), evidence.promoted_arm.probation
    silent = replace(run, metric=None)

    assert (-0.75, None) == (seen.figure(run), seen.figure(silent))
    assert (True, False) == (seen.sees(run), seen.sees(silent))
    assert [True, False, False] == [
        replace(seen, **keys).sees(run) for keys in ({"old": [1.0]}, {"old": []}, {"spread": 0.0})
    ]
    seen.total = 0.65 * seen.limit
    assert not seen.suspicious
    seen.total = math.nextafter(seen.total, math.inf)
    assert seen.suspicious


RATIOS = st.floats(0.1, 5)


def simulated_run_length(h: float, k: float, *, paths: int = 4000, seed: int = 3) -> float:
    rng = np.random.default_rng(seed)
    total, length, alive = np.zeros(paths), np.zeros(paths), np.ones(paths, dtype=bool)
    while alive.any():
        total = np.maximum(0, total - k - rng.standard_normal(paths))
        length[alive] += 1
        alive &= total <= h
    return float(length.mean())


@pytest.mark.parametrize(("h", "k"), [(3, 0.5), (4, 0.5), (2, 1), (4, 0.25)])
def test_the_run_length_is_what_a_simulation_finds(h, k):
    assert pytest.approx(simulated_run_length(h, k), rel=0.1) == average_run_length(h, k)


def simulated_false_alarms(spread: float, runs: int, *, paths: int = 50_000) -> float:
    rng, h = np.random.default_rng(5), cusum_threshold(1, spread, runs=runs, error=FALSE_ALARM)
    total, alarmed = np.zeros(paths), np.zeros(paths, dtype=bool)
    for _ in range(runs):
        total = np.maximum(0, total - 0.5 - spread * rng.standard_normal(paths))
        alarmed |= total > h * spread
    return float(alarmed.mean())


@pytest.mark.parametrize("runs", [12, 50])
@pytest.mark.parametrize("spread", [0.2, 0.4, 0.6, 1.0, 1.5])
def test_false_alarms_are_as_rare_as_required(spread, runs):
    """Few runs of a noisy metric alarm less: the sum has no time to build up."""
    share = simulated_false_alarms(spread, runs)

    assert share <= 1.2 * FALSE_ALARM
    if spread <= 0.6:
        assert share >= FALSE_ALARM / 2.5


@given(ratio=RATIOS, runs=st.integers(1, 200), error=st.floats(0.001, 0.2))
def test_the_threshold_undoes_the_run_length(ratio, runs, error):
    h = cusum_threshold(1, ratio, runs=runs, error=error)
    needed = runs / -np.log1p(-error)

    if h > 0:
        assert pytest.approx(needed, rel=1e-6) == average_run_length(h, 1 / (2 * ratio))
    else:
        assert average_run_length(0, 1 / (2 * ratio)) >= needed


@given(ratio=RATIOS, unit=st.floats(1e-6, 1e6))
def test_the_threshold_knows_no_units(ratio, unit):
    one = cusum_threshold(1, ratio, runs=12, error=0.02)

    assert pytest.approx(one, rel=1e-6) == cusum_threshold(unit, ratio * unit, runs=12, error=0.02)


@pytest.mark.parametrize("spread", [1e-3, 1e-9, 1e-200])
def test_a_shift_far_beyond_the_spread_needs_no_threshold(spread):
    assert 0.0 == cusum_threshold(1, spread, runs=12, error=0.02)


def test_the_sum_grows_by_what_exceeds_half_a_shift_and_never_below_zero():
    steps = [0.0]
    for value in (8.0, 9.0, 10.0, 20.0):
        steps.append(cusum_step(steps[-1], value, reference=10.0, shift=1.0))

    assert [0.0, 1.5, 2.0, 1.5, 0.0] == steps
