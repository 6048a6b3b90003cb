"""Who makes a trial's full runs, and what production's own runs are to it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.records.production import BegunRun
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.plan_trial import plan_trial
from tests.domain.workload_builder import change
from tests.usecases.canary_builder import (
    CARRIED,
    asks,
    begin,
    begun_round,
    measured,
    produce,
    register,
)
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    call_judge,
    evidence,
    load,
    put_spec,
    says,
)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"schedule": None}, "schedule.cron is not set"),
        ({"active": False}, "retired"),
        ({"spec_key": "workloads/bert-docs/specs/other.json"}, "training.learning_rate"),
        ({"spec_key": "workloads/bert-docs/specs/gone.json"}, "not registered"),
    ],
)
def test_production_carries_runs_only_where_it_trains_the_same_job(
    services: Any, changes: dict[str, Any], why: str | None
) -> None:
    put_spec(services, CARRIED)
    other = change(CARRIED, training__learning_rate=1.0)
    body = {"workload": other.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put("workloads/bert-docs/specs/other.json", to_json(body))
    register(services, **changes)
    plan_trial(EVENT, services=services)
    mode = load(services, "plan")["quality_mode"]

    used = "hybrid" if why is None else "shadow"
    assert ("hybrid", used, why is None) == (mode["asked"], mode["used"], mode["beside"])
    assert (why or "") in (mode["why"] or "")


def test_without_a_schedule_a_run_that_went_through_train_shows_that_more_will(
    services: Any,
) -> None:
    put_spec(services, CARRIED)
    register(services, schedule=None)
    produce(services, "r0", "baseline", None)
    plan_trial(EVENT, services=services)

    assert "hybrid" == load(services, "plan")["quality_mode"]["used"]


def test_productions_own_baseline_runs_are_evidence_while_the_trial_lasts(services: Any) -> None:
    put_spec(services, change(CARRIED, policy__quality_runs="shadow"))
    register(services)
    produce(services, "r0", "baseline", None)
    services.clock.seconds += 7200
    plan_trial(EVENT, services=services)
    call_judge(services, 0, [], asks("baseline 17"))
    measured(services, {"gpu": "g"})
    services.clock.seconds += 7200
    produce(services, "r1", "baseline", None)
    produce(services, "r2", "baseline", None, result={"finished": False})
    produce(services, "r3", "compile", None)
    call_judge(services, 1, [], says("promote"))

    baseline, candidate = evidence(services)["arms"]
    _, beside = baseline["runs"]
    assert ("r1", "production") == (beside["production_run"], beside["mode"])
    assert [] == candidate["runs"]


@pytest.mark.parametrize(("key", "count"), [("data_sha256", 1), ("image", 0)])
def test_a_run_beside_the_trial_that_is_made_of_something_else_is_left_out(
    services: Any, key: str, count: int
) -> None:
    begin(services)
    measured(services, {"gpu": "g", key: "old"})
    produce(services, "r1", "baseline", None, result={"fingerprint": {"gpu": "g", key: "new"}})
    call_judge(services, 5, [], says("promote"))

    runs = evidence(services)["arms"][0]["runs"]
    assert count == len([run for run in runs if run["stage"] == "quality"])


def test_runs_of_another_job_beside_the_trial_are_none_of_its_evidence(services: Any) -> None:
    begin(services)
    measured(services, {"gpu": "g"})
    other = change(CARRIED, training__learning_rate=1.0)
    body = {"workload": other.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put("other.json", to_json(body))
    begun = BegunRun(0, "r1", "e", "baseline", "scheduled", 1, 1, "other.json", "s.tgz")
    services.ledger.append("bert-docs", begun)
    produce(services, "r1", "baseline", None)
    call_judge(services, 5, [], says("promote"))

    assert [1, 0] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_a_production_run_that_cannot_be_read_makes_the_trial_invalid(services: Any) -> None:
    begin(services)
    measured(services, {"gpu": "g"})
    produce(services, "r1", "baseline", None, result={"wall_seconds": "long"})
    answer = call_judge(services, 5, [], says("promote"))

    assert "invalid" == answer["verdict"]
    assert "wall_seconds: must be a number" in load(services, "decision")["reasons"][0]["message"]


def test_of_productions_runs_what_can_be_read_is_kept_and_the_others_cost(services: Any) -> None:
    begun_round(services)
    measured(services, {"gpu": "g"})
    broken = {"wall_seconds": "long", "finished": False}
    produce(services, "r1", "compile", 0, result=broken)
    produce(services, "r2", "baseline", 1)
    answer = call_judge(services, 5, [], says("promote"))

    baseline, candidate = evidence(services)["arms"]
    assert "invalid" == answer["verdict"]
    assert ["r2"] == [run["production_run"] for run in baseline["runs"] if "production_run" in run]
    assert "long" == candidate["runs"][-1]["wall_seconds"]
    assert 10.0 == evidence(services)["plan"]["usd_by_job"]["cg-bert-docs-r1-p0-r0"]


@pytest.mark.parametrize("change", [{"job": None}, {"block": -1}])
def test_a_recorded_run_that_cannot_be_read_makes_the_trial_invalid(
    services: Any, change: dict[str, Any]
) -> None:
    begin(services)
    measured(services, {"gpu": "g"})
    document = evidence(services)
    document["arms"][0]["runs"][0] |= change
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))
    answer = call_judge(services, 5, [], says("promote"))

    assert "invalid" == answer["verdict"]
    assert "arms[0].runs[0]." in load(services, "decision")["reasons"][0]["message"]
    assert document["arms"][0]["runs"][0] in evidence(services)["arms"][0]["runs"]
