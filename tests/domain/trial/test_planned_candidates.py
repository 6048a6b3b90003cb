"""Candidates that a person may turn on: those that decided trials have planned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.trial.plan import (
    PlannedCandidate,
    RecordedPlan,
    candidate_named,
    planned_candidates,
)
from compilegate.domain.workload.model import BASELINE
from tests.domain.trial.plans import arm, plan


def decided(
    trial: str, at: int, verdict: str = "promote", candidate: str = "compile"
) -> TrialDecided:
    return TrialDecided(at, trial, verdict, f"{trial}/decision.json", f"d-{trial}", candidate)


def candidates(*planned: tuple[TrialDecided, RecordedPlan]) -> dict[str, PlannedCandidate]:
    return planned_candidates("bert-docs", planned)


def plan_of(**overrides: object) -> RecordedPlan:
    arms = (arm(BASELINE, role="baseline"), arm("compile", overrides=overrides, batch_size=16))
    return replace(plan(), arms=arms)


def test_neither_the_baseline_nor_a_control_is_a_candidate():
    arms = (arm(BASELINE, role="baseline"), arm("compile"), arm("compile-control"))

    assert ["compile"] == list(candidates((decided("t1", 1), replace(plan(), arms=arms))))


def test_of_several_trials_the_newest_counts_in_whatever_order_they_are_read():
    old = decided("t1", 1), plan_of()
    new = decided("t2", 2, verdict="stay_off"), plan_of(batch_size=16)
    one, other = candidates(old, new)["compile"], candidates(new, old)["compile"]

    assert one == other
    assert ("t2", "stay_off", False) == (one.trial, one.verdict, one.proven)
    assert {"batch_size": 16, "learning_rate": 0.1} == one.flag.overrides
    assert ("probation", "compile", "d-t2") == (
        one.flag.state, one.flag.candidate, one.flag.decision_id,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "candidate", "proven"),
    [("promote", "compile", True), ("promote", "other", False), ("inconclusive", "compile", False)],
)
def test_a_candidate_is_proven_where_its_own_trial_promoted_it(verdict, candidate, proven):
    known = candidates((decided("t1", 1, verdict, candidate), plan_of()))

    assert proven is known["compile"].proven


def test_a_candidate_names_the_records_of_its_trial():
    details = candidates((decided("t1", 1), plan_of()))["compile"].details

    assert ("t1", "t1/decision.json") == (details["trial"], details["decision_key"])
    assert "t1/evidence.json" in details["evidence_key"]


def test_a_candidate_that_was_never_planned_is_refused_with_those_that_were():
    planned = candidates((decided("t1", 1), plan_of()))

    assert planned["compile"] is candidate_named("compile", planned, "bert-docs")
    with pytest.raises(InvalidInputError, match="Fix: use one of compile"):
        candidate_named("compil", planned, "bert-docs")
    with pytest.raises(InvalidInputError, match="run a trial of bert-docs first"):
        candidate_named("compile", {}, "bert-docs")
