"""Lease, eligibility and plan: what is recorded before a trial has cost anything."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from compilegate.domain.errors import NotFoundError, WorkloadLockedError
from compilegate.domain.reasons import in_one_line
from compilegate.usecases.trial.check_eligibility import check_eligibility
from compilegate.usecases.trial.lock import acquire_lock, release_lock
from compilegate.usecases.trial.plan_trial import plan_trial
from compilegate.usecases.trial.write_report import write_report
from tests.domain.workload_builder import ARTICLE, MANAGED, SOUND, XGBOOST, change
from tests.usecases.trial_builder import EVENT, put_spec


def test_the_lock_is_taken_once_and_released_by_its_holder_only(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    other = {**EVENT, "execution": "other"}

    with pytest.raises(WorkloadLockedError):
        acquire_lock(other, services=services)

    release_lock(other, services=services)
    with pytest.raises(WorkloadLockedError):
        acquire_lock(other, services=services)

    release_lock(EVENT, services=services)
    acquire_lock(other, services=services)


def test_an_ineligible_workload_gets_its_decision_and_a_report_without_charts(
    services: Any,
) -> None:
    put_spec(services, dataclasses.replace(XGBOOST, name="bert-docs"))
    answer = check_eligibility(EVENT, services=services)
    report = write_report({**EVENT, **answer}, services=services)

    assert "ineligible" == answer["verdict"]
    decision = json.loads(services.store.get(answer["decision_key"]))
    assert "not_gpu" in {reason["code"] for reason in decision["reasons"]}
    assert b"<!doctype html>" == services.store.get(report["report_key"])[:15].lower()
    assert len(report["subject"]) <= 100


def test_an_ineligible_decision_has_the_way_out_in_one_line(services: Any) -> None:
    put_spec(services, change(ARTICLE, name="bert-docs", candidates=(MANAGED,)))
    answer = check_eligibility(EVENT, services=services)
    decision = json.loads(services.store.get(answer["decision_key"]))
    fix = in_one_line(decision["reasons"][0]["fix"])

    assert "\n" not in fix
    assert (
        'baseline, transformers by requirements.txt: framework: {name: pytorch, version: "1.13.1", '
        "python: py39}; distribution: pytorchxla"
    ) in fix


def test_an_eligible_workload_goes_on_without_a_decision(services: Any) -> None:
    assert {"verdict": "eligible", "decision_key": None} == check_eligibility(
        EVENT, services=services
    )


def test_a_missing_spec_is_not_found(services: Any) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        check_eligibility({**EVENT, "spec_key": "workloads/none.json"}, services=services)


def test_a_plan_fixes_arms_and_cost(services: Any) -> None:
    answer = plan_trial(EVENT, services=services)
    plan = json.loads(services.store.get(answer["plan_key"]))

    assert "continue" == answer["verdict"]
    assert ["baseline", "compile"] == [arm["name"] for arm in plan["arms"]]
    assert answer["estimated_usd"] == pytest.approx(plan["estimate"]["usd"], abs=1e-3)


def test_a_plan_above_the_cap_is_refused(services: Any) -> None:
    policy = dataclasses.replace(SOUND.policy, max_trial_usd=1.0)
    put_spec(services, dataclasses.replace(SOUND, policy=policy))
    answer = plan_trial(EVENT, services=services)

    assert "inconclusive" == answer["verdict"]
    decision = json.loads(services.store.get(answer["decision_key"]))
    assert "trial_over_budget" == decision["reasons"][0]["code"]


@pytest.mark.parametrize("change", [{"instance_type": "ml.p4d.24xlarge"}, {"instance_count": 2}])
def test_an_arm_on_another_cluster_is_planned_at_that_clusters_price(
    services: Any, change: dict[str, Any]
) -> None:
    candidate = dataclasses.replace(SOUND.candidates[0], **change)
    put_spec(services, dataclasses.replace(SOUND, candidates=(candidate,)))
    answer = plan_trial(EVENT, services=services)
    baseline, arm = json.loads(services.store.get(answer["plan_key"]))["arms"]

    assert "continue" == answer["verdict"]
    assert change.items() <= arm.items()
    assert baseline["usd_per_hour"] != arm["usd_per_hour"]


@pytest.mark.parametrize(
    ("history", "candidates", "runs", "rounds"),
    [((), 1, 3, 2), (SOUND.quality.history, 1, 2, 2), ((), 2, 3, 4)],
)
def test_the_plans_hours_count_the_rounds_of_one_candidate_after_another(
    history: tuple[float, ...], candidates: int, runs: int, rounds: int, services: Any
) -> None:
    """The judge looks at 2 and at 3 runs; beside a telling history a single run comes first.

    Before that three blocks in two jobs: 0.1 h a segment, 300 s a first compilation, start-up.
    """
    larger = dataclasses.replace(SOUND.candidates[0], name="larger", batch_size=48)
    named = (SOUND.candidates[0], larger)[:candidates]
    changed = change(SOUND, quality__history=history, candidates=named)
    put_spec(services, changed)
    plan = json.loads(services.store.get(plan_trial(EVENT, services=services)["plan_key"]))

    first_look = 3 * 0.1 * (candidates + 1) + candidates * 300 / 3600 + 2 * 0.05
    hours = first_look + 6 * rounds
    assert (runs, pytest.approx(hours)) == (plan["quality_runs"], plan["estimate"]["hours"])
