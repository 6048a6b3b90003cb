"""During a probation a team's jobs bring baselines of today, too."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.followers import REFRESH_EVERY
from compilegate.flags.overlay import ESTIMATOR, FlagLookup, carry
from tests.flags.ssm import FakeSsm

JOB = {"entry_point": "train.py", "hyperparameters": {"epochs": 3}}


def tags(state: str, chance: Any) -> dict[str, str]:
    flag = Flag(True, state, "compile", {"compiler": "torch_compile"}, "d1", "t")
    lookup = FlagLookup("bert-docs", client=FakeSsm(flag.to_json()), chance=chance)
    job = carry(JOB, ESTIMATOR, lookup)
    return {tag["Key"].removeprefix("compilegate:"): tag["Value"] for tag in job["tags"]}


def test_one_job_in_so_many_is_a_baseline_of_the_same_decision() -> None:
    chance = random.Random(17).random
    runs = [tags("probation", chance) for _ in range(1200)]

    arms = Counter(run["arm"] for run in runs)
    assert {"d1"} == {run["decision"] for run in runs}
    assert 1200 / REFRESH_EVERY == pytest.approx(arms["baseline"], rel=0.15)
    assert 1200 == arms["baseline"] + arms["compile"]


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
