"""Who makes a trial's full runs, and what production's own runs are to it meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.records.production import BegunRun
from compilegate.usecases.canary import close_after_run, end_canary, release_models
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.abort_trial import abort_trial
from tests.decision_builder import decision_document
from tests.domain.workload_builder import change
from tests.usecases.canary_builder import (
    CARRIED,
    asks,
    begin,
    begun_round,
    ended_with,
    measured,
    next_slot,
    open_round,
    produce,
    register,
    tag_of,
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


# What becomes of a candidate's models, and of production, once the trial is over.


def test_an_aborted_trial_gives_production_back_at_once_and_keeps_what_was_recorded(
    services: Any,
) -> None:
    begun_round(services)
    made = produce(services, "r1", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert next_slot(services) is None
    assert "aborted" == ended_with(services)
    entries = services.ledger.raw.entries("bert-docs")
    assert [made.job] == [entry["job"] for entry in entries if entry["kind"] == "run"]
    assert "rejected" == tag_of(services, made.job)


def test_models_that_cannot_be_tagged_do_not_keep_the_lock(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)

    def crash(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(services.jobs, "tag", crash)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)
    assert {} == services.locks.held


@pytest.mark.parametrize(
    ("verdict", "candidate", "enabled", "tag"),
    [
        ("promote", "compile", True, "released"),
        ("promote", "compile", False, "rejected"),  # a person did not approve
        ("promote", "another", True, "rejected"),
        ("stay_off", "compile", True, "rejected"),
        ("inconclusive", "compile", True, "rejected"),
    ],
)
def test_models_are_released_with_the_promotion_of_their_own_candidate_and_never_else(
    services: Any, verdict: str, candidate: str, enabled: bool, tag: str
) -> None:
    begun_round(services)
    mine = produce(services, "r1", "compile", 0)
    theirs = produce(services, "r2", "baseline", 1)
    decision = decision_document(verdict, candidate=candidate)
    services.store.put("decision.json", json.dumps(decision).encode())
    event = {**EVENT, "decision_key": "decision.json", "flag_enabled": enabled}
    answer = release_models(event, services=services)

    assert tag == tag_of(services, mine.job)
    assert [mine.job] == answer[tag]
    assert tag_of(services, theirs.job) is None


def test_where_policy_holds_no_models_none_is_tagged(services: Any) -> None:
    open_round(services, begin(services, change(CARRIED, policy__hold_models=False)))
    mine = produce(services, "r1", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert tag_of(services, mine.job) is None


def test_a_model_that_comes_after_its_trial_was_given_up_is_rejected(services: Any) -> None:
    begun_round(services)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)
    assert tag_of(services, produce(services, "r2", "baseline", 1).job) is None


@pytest.mark.parametrize("ended", ["lost", "changed", "retired"])
def test_a_model_that_comes_after_its_round_had_ended_is_rejected(
    services: Any, ended: str
) -> None:
    """The round ended while it was on its way; whatever its trial says later tags it anew."""
    begun_round(services)
    if ended == "lost":
        produce(services, "r0", "compile", 0, result={"finished": False, "metric": None})
    elif ended == "changed":
        produce(services, "r0", "baseline", None, job="another")
    else:
        end_canary("bert-docs", services=services)

    assert ended == ended_with(services)
    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)


def test_the_run_that_completes_a_round_keeps_its_tag_however_often_it_is_recorded(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "baseline", 1)
    made = produce(services, "r2", "compile", 0)
    close_after_run("bert-docs", made, job=None, services=services)

    assert "complete" == ended_with(services)
    assert tag_of(services, made.job) is None
