"""Trials end as the evidence says: the deployed state machine, the real Lambdas, real jobs."""

from __future__ import annotations

import json

import pytest

from compilegate.domain import naming
from tests.domain.evidence_builder import judge

pytestmark = pytest.mark.e2e


def test_the_report_lies_where_people_find_it(trial, app):
    running = trial()
    running.wait()

    for extension, start in (("html", b"<!doctype html>"), ("md", b"#"), ("json", b"{")):
        key = naming.report_key(running.workload, running.trial, extension)
        assert app.store.get(key).lstrip().lower().startswith(start)


def test_a_loser_goes_no_further_than_the_speed_gate(trial):
    running = trial(speedup=0.9)

    found = running.wait()
    assert "SUCCEEDED" == found["status"], found.get("cause")
    assert "stay_off" == running.record("decision")["verdict"]
    assert {"s0-r0"} == set(running.jobs())
    assert running.flag() is None


def test_worse_quality_stays_off(trial):
    running = trial(loss_shift=0.2)
    running.wait()

    decision = running.record("decision")
    assert ("stay_off", "quality") == (decision["verdict"], decision["stage"])
    assert running.flag() is None


def test_a_treatment_that_was_not_applied_is_invalid(trial):
    running = trial(unapplied="compile")
    running.wait()

    assert "invalid" == running.record("decision")["verdict"]
    assert running.flag() is None


def test_a_candidate_that_diverges_stays_off(trial):
    running = trial(nan="compile")
    running.wait()

    assert "stay_off" == running.record("decision")["verdict"]


def test_an_ineligible_workload_is_recorded_with_reasons_and_costs_nothing(trial):
    running = trial(framework="xgboost")

    found = running.wait()
    assert "SUCCEEDED" == found["status"], found.get("cause")
    decision = running.record("decision")
    assert "ineligible" == decision["verdict"]
    assert decision["reasons"]
    assert {} == running.jobs()
    assert "decision" in running.entries()
    assert running.lock() is None


def test_a_trial_above_the_cap_is_refused_before_any_spend(trial):
    running = trial(policy={"max_trial_usd": 0.01})
    running.wait()

    decision = running.record("decision")
    assert ("inconclusive", "trial_over_budget") == (
        decision["verdict"],
        decision["reasons"][0]["code"],
    )
    assert {} == running.jobs()


def test_promotion_is_taken_back_by_a_later_proven_loss(trial):
    first = trial()
    first.wait()
    assert first.flag()["enabled"]

    second = trial(name=first.workload, speedup=0.9)
    second.wait()

    assert "stay_off" == second.record("decision")["verdict"]
    assert not second.flag()["enabled"]


def test_the_same_evidence_judged_again_gives_the_recorded_decision(trial):
    running = trial()
    running.wait()
    recorded = running.record("decision")
    again = judge(running.record("evidence")).to_dict(recorded["flag"]["name"])

    assert json.loads(json.dumps(again)) == {k: v for k, v in recorded.items() if k != "trial"}
