"""Who makes a trial's full runs, and what production's own runs are to it meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.usecases.canary import release_models
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.abort_trial import abort_trial
from tests.decision_builder import decision_document
from tests.domain.workload_builder import change
from tests.usecases.canary_builder import (
    CARRIED,
    begin,
    begun_round,
    measured,
    produce,
    register,
    tag_of,
)
from tests.usecases.trial_builder import (
    EVENT,
    call_judge,
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


def test_a_production_run_that_cannot_be_read_makes_the_trial_invalid(services: Any) -> None:
    begin(services)
    measured(services, {"gpu": "g"})
    produce(services, "r1", "baseline", None, result={"wall_seconds": "long"})
    answer = call_judge(services, 5, [], says("promote"))

    assert "invalid" == answer["verdict"]
    assert "wall_seconds: must be a number" in load(services, "decision")["reasons"][0]["message"]


# What becomes of a candidate's models, and of production, once the trial is over.


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


def test_a_model_that_comes_after_its_trial_was_given_up_is_rejected(services: Any) -> None:
    begun_round(services)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)
    assert tag_of(services, produce(services, "r2", "baseline", 1).job) is None
