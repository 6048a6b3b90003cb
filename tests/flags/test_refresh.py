"""During a probation and after it a team's jobs bring baselines of today, too."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.followers import REFRESH_EVERY
from compilegate.flags.overlay import ESTIMATOR, REQUEST, FlagLookup, carry
from tests.flags.ssm import FakeSsm

JOB = {"entry_point": "train.py", "hyperparameters": {"epochs": 3}}


def tags(
    state: str, chance: Any, *, share: float | None = None, job: str | None = None, day: int = 0
) -> dict[str, str]:
    flag = Flag(True, state, "compile", {"compiler": "torch_compile"}, "d1", "t", share)
    lookup = FlagLookup(
        "bert-docs", client=FakeSsm(flag.to_json()), chance=chance, now=lambda: day * 86_400.0
    )
    if job is None:
        marked = carry(JOB, ESTIMATOR, lookup)["tags"]
    else:
        marked = carry({"TrainingJobName": job}, REQUEST, lookup)["Tags"]
    return {tag["Key"].removeprefix("compilegate:"): tag["Value"] for tag in marked}


def test_one_job_in_so_many_is_a_baseline_of_the_same_decision() -> None:
    chance = random.Random(17).random
    runs = [tags("probation", chance) for _ in range(1200)]

    arms = Counter(run["arm"] for run in runs)
    assert {"d1"} == {run["decision"] for run in runs}
    assert 1200 / REFRESH_EVERY == pytest.approx(arms["baseline"], rel=0.15)
    assert 1200 == arms["baseline"] + arms["compile"]


@pytest.mark.parametrize(
    ("share", "chance", "arm"),
    [
        (0.04, 0.039, "baseline"), (0.04, 0.04, "compile"), (1.0, 0.999, "baseline"),
        (0.0, 0.0, "compile"), (None, 0.0, "compile"),
    ],
)  # fmt: skip
def test_once_permanent_the_flag_says_how_many_stay_on_the_baseline(
    share: float | None, chance: float, arm: str
) -> None:
    held = tags("permanent", lambda: chance, share=share)

    assert (arm, "d1") == (held["arm"], held["decision"])


def test_a_job_with_a_name_is_drawn_by_it_and_the_day_again_and_again_alike() -> None:
    def drawn(day: int, number: int) -> str:
        # By chance every job would be held back.
        return tags("permanent", lambda: 0.0, share=0.1, job=f"nightly-{number}", day=day)["arm"]

    arms = [[drawn(day, number) for number in range(40)] for day in range(30)]

    assert 120 == pytest.approx(sum(day.count("baseline") for day in arms), rel=0.25)
    assert arms[3] == [drawn(3, number) for number in range(40)]
    assert len({tuple(day) for day in arms}) == 30


@pytest.mark.parametrize(
    ("state", "chance", "arm"),
    [
        ("probation", 0.166, "baseline"), ("probation", 1 / 6, "compile"),
        # After it every job follows; a stale flag that stayed on is watched like a probation.
        ("permanent", 0.0, "compile"), ("stale", 0.0, "baseline"),
    ],
)  # fmt: skip
def test_that_is_one_in_six_while_the_flag_is_watched(state: str, chance: float, arm: str) -> None:
    assert arm == tags(state, lambda: chance)["arm"]
