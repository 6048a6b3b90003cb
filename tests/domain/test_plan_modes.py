"""What a plan reckons where production carries full runs: cost, length, quotas, backoff."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.quality import first_runs
from compilegate.domain.planning import rounds
from compilegate.domain.planning.plan import Plan, plan_trial
from compilegate.domain.planning.proof import plan_proof
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from tests.domain.evidence_builder import document
from tests.domain.workload_builder import SOUND, change

ROOMY = change(SOUND, policy__max_trial_usd=1e6)
HISTORIES = st.integers(0, 8)


def planned(workload: Workload, mode: str) -> Plan:
    facts = load_facts()
    eligibility = check_eligibility(workload, facts, region="us-east-1")
    found = plan_trial(workload, eligibility.choice, facts, region="us-east-1", mode=mode)
    assert isinstance(found, Plan)
    return found


def test_only_extra_runs_cost_anything_and_each_mode_has_its_own_number_of_looks() -> None:
    plans = {mode: planned(ROOMY, mode) for mode in ("shadow", "hybrid", "canary")}
    usd = {mode: plan.estimate.quality_usd for mode, plan in plans.items()}

    assert usd["shadow"] > usd["hybrid"] > usd["canary"] == pytest.approx(0)
    looks = [plan.max_quality_runs for plan in plans.values()]
    assert [12, 36, 36] == looks


def test_it_takes_as_long_as_production_takes_for_so_many_runs() -> None:
    weekly = planned(change(ROOMY, schedule__runs_per_week=1.0), "canary")
    daily = planned(change(ROOMY, schedule__runs_per_week=7.0), "canary")

    nights = weekly.estimate.hours - weekly.estimate.low_hours
    assert nights > 7 * 24
    assert weekly.estimate.hours > 6 * daily.estimate.hours


def test_no_job_of_the_trials_own_runs_side_by_side_with_another() -> None:
    (shadow,), (canary,) = (planned(ROOMY, mode).quotas for mode in ("shadow", "canary"))

    assert 1 == canary.at_once < shadow.at_once


@given(history=HISTORIES)
def test_the_first_runs_of_a_hybrid_trial_are_those_that_the_judge_asks_for(history: int) -> None:
    past = tuple(0.9 + 0.0001 * n for n in range(history))
    workload = change(ROOMY, quality__history=past)
    proof = plan_proof(workload, candidates=1, mode="hybrid")
    evidence = document(policy={"quality_runs": "hybrid"})
    evidence["quality"]["history"] = list(past)

    assert proof is not None
    assert first_runs(read_evidence(evidence)) == proof.extra_runs(12)


@given(
    history=HISTORIES, runs=st.integers(0, 36), mode=st.sampled_from(["shadow", "hybrid", "canary"])
)
def test_every_run_is_made_by_the_trial_or_by_production(
    history: int, runs: int, mode: str
) -> None:
    past = tuple(0.9 + 0.0001 * n for n in range(history))
    proof = plan_proof(change(ROOMY, quality__history=past), candidates=1, mode=mode)
    assert proof is not None
    extra, carried = proof.extra_runs(runs), proof.production_runs(runs)

    assert 0 <= extra <= runs
    assert (carried >= runs - extra) if mode != "shadow" else carried == 0
    assert (extra == 0) or mode != "canary"


@given(
    runs=st.integers(1, 2),
    per_week=st.floats(0.2, 100.0),
    hours=st.floats(0.25, 100.0),
    elapsed=st.integers(0, rounds.MACHINE_SECONDS),
)
def test_patience_covers_the_schedule_and_never_outlasts_the_machine(
    runs: int, per_week: float, hours: float, elapsed: int
) -> None:
    needed = rounds.production_seconds(runs, per_week, hours)
    if not rounds.has_time(elapsed, needed, limit_seconds=rounds.MACHINE_SECONDS):
        return
    backoff = rounds.production_timeout_seconds(runs, per_week, hours, elapsed_seconds=elapsed)

    assert needed <= backoff
    assert elapsed + backoff + rounds.ENDING_SECONDS <= rounds.MACHINE_SECONDS
