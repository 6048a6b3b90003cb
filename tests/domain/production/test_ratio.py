"""The ratio of baseline to candidate: exact without noise, else that of least squares."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.production.ratio import Point, ratio_of

WEEK = 7 * 86_400


def points(logs: list[float], arms: str, gap: float = 86_400) -> list[Point]:
    """A run every ``gap`` seconds; ``b`` is the baseline's."""
    return [
        Point(1.79e9 + gap * place, log, arm == "b")
        for place, (log, arm) in enumerate(zip(logs, arms, strict=True))
    ]


STEP = "ccbcccccccbc" * 3


@pytest.mark.parametrize(
    ("arms", "logs", "gap", "log"),
    [
        *((arms, [1.0, 2.0, 1.5, 1.0, 2.0, 1.7][: len(arms)], 86_400, None)
          for arms in ("", "b", "c", "bc", "bcc", "cccccc", "bbbbbb")),
        # More blocks than runs: some have none.
        ("cbc", [1.0, 1.5, 1.1], 20 * WEEK, None),
        # At one time there is a level and no line.
        ("cbc", [1.0, 1.5, 1.1], 0, 0.45),
        # A step disturbs its own block alone.
        (STEP, [0.3 * (arm == "b") + 0.5 * (at >= 24) for at, arm in enumerate(STEP)], 86_400, 0.3),
    ],
)  # fmt: skip
def test_the_ratio_of_few_runs_far_apart_at_once_or_around_a_step(arms, logs, gap, log):
    ratio = ratio_of(points(logs, arms, gap=gap))

    assert log == (ratio and pytest.approx(ratio.log))


@pytest.mark.parametrize(
    ("arms", "days", "known"),
    [("bbccc", 3, True), ("bbccc", 4, False), ("bbbcccc", 5, True), ("bbbcccc", 6, False)],
)
def test_a_line_through_a_burst_of_one_arm_is_not_drawn_on_to_the_others(arms, days, known):
    """Arms apart leave less and less of themselves beside the line: 6.4, 4.7, 5.4 and 4.3 %."""
    made = points([0.3 * (arm == "b") for arm in arms], arms)
    apart = [one if one.is_baseline else replace(one, at=one.at + days * 86_400) for one in made]

    assert known is (ratio_of(apart) is not None)


@pytest.mark.parametrize(("largest", "known"), [(math.log(9.9), True), (math.log(10.1), False)])
def test_a_ratio_or_an_error_beyond_ten_is_none(largest, known):
    arms, noise = "bccbbccb", [0.0, 0.1, -0.1, 0.1, 0.0, 0.1, -0.1, 0.1]
    error = getattr(ratio_of(points(noise, arms)), "se")  # noqa: B009

    found = [
        ratio_of(points(logs, arms))
        for logs in (
            [largest * (arm == "b") for arm in arms],
            [-largest * (arm == "b") for arm in arms],
            [largest / error * one for one in noise],
        )
    ]

    assert [known] * 3 == [ratio is not None for ratio in found]


@given(
    noise=st.lists(st.floats(-1, 1), min_size=30, max_size=30),
    gap=st.sampled_from([3600.0, WEEK / 2]),
    slope=st.floats(-0.1, 0.1),
)
def test_estimate_and_error_are_those_of_least_squares(noise, gap, slope):
    """By numpy over the whole design matrix: a level and a slope for each block, and the arm."""
    arms = "cbccccccccbcccc" * 2
    logs = [slope * place + one for place, one in enumerate(noise)]
    ratio = ratio_of(points(logs, arms, gap))
    blocks = [(0, 10), (10, 20), (20, 30)]  # 12 runs and 8 weeks at most

    design = np.zeros((30, 7))
    for number, (first, end) in enumerate(blocks):
        design[first:end, 2 * number] = 1
        design[first:end, 2 * number + 1] = np.arange(end - first)
    design[:, 6] = [arm == "b" for arm in arms]
    solution, *_ = np.linalg.lstsq(design, np.array(logs))
    rest = np.array(logs) - design @ solution
    variance = rest @ rest / (30 - 7) * np.linalg.inv(design.T @ design)[6, 6]

    assert ratio.log == pytest.approx(solution[6], abs=1e-9)
    widened = stats.t.ppf(0.95, 23) / stats.norm.ppf(0.95)
    assert ratio.se == pytest.approx(widened * math.sqrt(variance), abs=1e-9)


@pytest.mark.parametrize(
    ("runs", "gap", "blocks"),
    [
        # Twelve runs, and eight weeks from the first to the last.
        (12, 1.0, 1), (13, 1.0, 2), (24, 1.0, 2), (25, 1.0, 3),
        (9, WEEK, 1), (9, WEEK + 1, 2), (9, 2 * WEEK, 2), (10, 2 * WEEK, 3),
    ],
)  # fmt: skip
def test_a_block_has_twelve_runs_and_eight_weeks_at_most(runs, gap, blocks):
    """A step between two blocks disturbs nothing, one in the middle of a block does."""
    ends = [round(runs * place / blocks) for place in range(blocks + 1)]
    arms = "".join("b" if place - 1 in ends else "c" for place in range(runs))
    logs = [0.25 * (arm == "b") for arm in arms]
    between, within = (
        [log + 0.7 * sum(step <= place for step in steps) for place, log in enumerate(logs)]
        for steps in (ends, [(ends[0] + ends[1]) // 2])
    )
    exact, disturbed = (ratio_of(points(one, arms, gap)) for one in (between, within))

    assert (pytest.approx(0.25), pytest.approx(0, abs=1e-9)) == (exact.log, exact.se)
    assert disturbed.se > 0.01
