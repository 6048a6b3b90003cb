"""A recorded plan is read, and what follows from it; arms of which no job left anything."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from compilegate.domain.decision import CANARY, SHADOW
from compilegate.domain.trial.plan import QualityMode, read_plan
from compilegate.usecases.reports import silent_arms
from tests.domain.trial.plans import arm, plan


def document(**changes: Any) -> dict[str, Any]:
    return {**asdict(plan("baseline", "compile")), "quotas": [], **changes}


def test_a_later_releases_further_fields_are_left_out():
    mode = QualityMode(CANARY, CANARY, beside=True)
    arms = [{**arm, "of_a_later_release": 1} for arm in document()["arms"]]
    later = {**asdict(mode), "of_a_later_release": 1}

    assert plan("baseline", "compile", quality_mode=mode) == read_plan(
        document(arms=arms, quality_mode=later, of_a_later_release=1)
    )


def test_the_first_arm_is_the_baseline_and_controls_are_no_candidates():
    read = plan("baseline", "compile", "a-control", "b-control", "larger")

    assert ("baseline", 2) == (read.baseline.name, read.candidates)
    assert ["baseline", "compile", "larger"] == [one.name for one in read.judged_arms]
    assert "a-control" == read.arm("a-control").name
    larger = replace(
        read, arms=(read.baseline, arm("larger", batch_size=16, overrides={"batch_size": 16}))
    )
    assert ({}, 16) == (larger.overrides("baseline"), larger.overrides("larger")["batch_size"])


@pytest.mark.parametrize(
    ("used", "beside", "in_production"),
    [(SHADOW, False, False), (SHADOW, True, True), (CANARY, False, True), (CANARY, True, True)],
)
def test_production_is_evidence_where_it_trains_the_same_or_makes_the_runs(
    used, beside, in_production
):
    read = plan("baseline", "compile", quality_mode=QualityMode(CANARY, used, beside=beside))

    assert (in_production, used == CANARY) == (read.runs_in_production, read.is_canary)


def test_an_arm_of_which_three_jobs_left_nothing_is_given_up():
    unmeasured = {
        "s0": ["compile", "larger"], "s1": ["compile"], "s2": ["larger", "compile"],
        "s3": "x", "s4": "x", "s5": "x",
    }  # fmt: skip
    given_up = silent_arms({"plan": {"unmeasured_by_job": unmeasured}})

    assert ["compile"] == [*given_up]
    reason = given_up["compile"]
    assert ("evidence_missing", "compile") == (reason.code, reason.arm)
    assert "compile: 3 speed jobs" in reason.message
    assert reason.message.endswith("s0, s1, s2")


@pytest.mark.parametrize(
    "evidence", [None, [], {}, {"plan": 1}, {"plan": {}}, {"plan": {"unmeasured_by_job": 3}}]
)
def test_evidence_that_cannot_be_read_gives_up_no_arm(evidence):
    assert {} == silent_arms(evidence)
