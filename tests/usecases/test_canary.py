"""Canary rounds: made by production, closed and judged, whatever breaks off, and their models."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.domain.records.production import CanaryClosed, CanaryReported
from compilegate.ports import Ledger
from compilegate.usecases import canary
from compilegate.usecases.canary import close_after_run, release_models, tag_models
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import Trial, load_registration, to_json
from compilegate.usecases.registration import RegisterOptions, retire
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import decision_document
from tests.domain.workload_builder import change
from tests.fakes import MemorySchedules
from tests.usecases.canary_builder import (
    CARRIED,
    JOB,
    asks,
    begin,
    begun_round,
    ended_with,
    measured,
    next_slot,
    open_round,
    produce,
    reason,
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


def test_a_round_that_was_not_finished_ends_the_trial_undecided_and_keeps_its_runs(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    answer = call_judge(services, 5, [], asks("baseline 17"))

    assert ("inconclusive", "canary_overdue") == (answer["verdict"], reason(services))
    assert "overdue" == ended_with(services)
    assert [0, 1] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_a_round_has_the_overrides_of_its_arms_and_which_one_is_on(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = begin(services)
    plan = Mock(on_top_of="larger", overrides=lambda arm: {"batch_size": len(arm)})
    monkeypatch.setattr(canary, "load_plan", lambda *_: plan)
    open_round(services, answer)
    (opened,) = services.ledger.history("bert-docs").rounds

    arms = {"compile": {"batch_size": 7}, "baseline": {"batch_size": 8}}
    assert ("larger", arms) == (opened.on, opened.arms)


def test_a_late_repetition_of_the_judge_leaves_the_round_that_it_began(services: Any) -> None:
    begun_round(services)
    call_judge(services, 4, [], asks("compile 17", "baseline 17"))

    assert ended_with(services) is None
    assert next_slot(services) is not None


def test_the_lock_outlives_the_round(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer)

    wait = answer["canary"]["timeout_seconds"]
    assert wait > 3600
    assert services.clock.now() + wait + LOCK_SECONDS == services.locks.held["bert-docs"][1]
    with pytest.raises(WorkloadLockedError):
        acquire_lock({**EVENT, "trial": "another1", "execution": "x"}, services=services)


@pytest.mark.parametrize("why", ["complete", "lost"])
def test_a_wait_that_begins_after_the_end_is_answered_at_once(services: Any, why: str) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    produce(services, "r1", "compile", 0)
    if why == "complete":
        produce(services, "r2", "baseline", 1)
    else:  # of which the trial was not notified
        services.ledger.append("bert-docs", CanaryClosed(1, TRIAL, 4, why))
    reply = open_round(services, answer, "second")

    assert {"round": 4, "closed": why} == reply
    assert [True] == [one.reported for one in services.ledger.history("bert-docs").rounds]
    assert {"round": 4, "reason": why} == services.tokens.answers["second"]


def test_no_more_of_the_ledger_is_read_than_since_the_oldest_round_that_it_is_about(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = begin(services)
    open_round(services, answer)
    (first,) = services.ledger.history("bert-docs").rounds
    later = {"a": 7, "b": -9, "c": 5}
    for name, seconds in later.items():
        services.ledger.append("bert-docs", replace(first, trial=name, at=first.at + seconds))
    services.ledger.append("bert-docs", replace(first, round=5, at=first.at + 8))
    services.ledger.append("bert-docs", CanaryReported(1, "b", 4))
    read, history = [], Ledger.history

    def spied(*arguments: Any, **named: Any) -> Any:
        read.append(named.get("since"))
        return history(*arguments, **named)

    monkeypatch.setattr(Ledger, "history", spied)
    run = produce(services, "r1", "baseline", None)
    services.clock.seconds += 60
    for act in (
        lambda: close_after_run("bert-docs", run, job=JOB, services=services),
        lambda: tag_models(Trial("bert-docs", TRIAL, ""), None, services),
        lambda: open_round(services, answer, "second"),
    ):
        act()
        assert first.at == read[-1]
    nothing = tag_models(Trial("bert-docs", "other", ""), None, services)
    assert {"released": [], "rejected": []} == nothing


@pytest.mark.parametrize("broken", ["put_once", "send_success"])
def test_what_a_crash_left_undone_the_next_production_run_does(
    services: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    place = services.ledger.raw if broken == "put_once" else services.tokens
    sound = getattr(place, broken)

    def crash(*arguments: Any) -> Any:
        if broken == "send_success" or "#closed" in arguments[1]:
            raise ConnectionError
        return sound(*arguments)

    monkeypatch.setattr(place, broken, crash)
    with pytest.raises(ConnectionError):
        produce(services, "r2", "baseline", 1)
    monkeypatch.setattr(place, broken, sound)
    assert {} == services.tokens.answers

    produce(services, "r3", "baseline", None)
    assert {"first": {"round": 4, "reason": "complete"}} == services.tokens.answers


def test_an_answer_is_not_repeated_once_it_is_recorded(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    done = produce(services, "r2", "baseline", 1)
    services.tokens.waiting.add("first")
    close_after_run("bert-docs", done, job=JOB, services=services)

    assert {"first"} == services.tokens.waiting


RETIRED_ANSWER = {"round": 4, "reason": "retired"}


def take_out(services: Any, **changes: Any) -> str:
    asked = RegisterOptions(by="human:ada", **changes)
    return retire("bert-docs", services=services, schedules=MemorySchedules(), options=asked).what


def test_a_removal_that_died_before_the_trial_was_notified_is_finished_by_the_next(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_round(services)
    with monkeypatch.context() as broken:
        broken.setattr(services.tokens, "send_success", _lost)
        with pytest.raises(ConnectionError):
            take_out(services)
    assert not load_registration(services.store, "bert-docs").active

    assert "unchanged" == take_out(services)
    assert {"first": RETIRED_ANSWER} == services.tokens.answers


def test_a_round_that_is_asked_for_after_the_removal_ends_before_it_waits(services: Any) -> None:
    answer = begin(services)
    take_out(services)

    assert "retired" == open_round(services, answer)["closed"]
    assert {"first": RETIRED_ANSWER} == services.tokens.answers
    assert [True] == [one.reported for one in services.ledger.history("bert-docs").rounds]


def _lost(*_: Any) -> bool:
    raise ConnectionError


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
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
    earlier = produce(services, "r0", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert "rejected" == tag_of(services, earlier.job)
    assert [True] == [one.reported for one in services.ledger.history("bert-docs").rounds]
    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)
    assert tag_of(services, produce(services, "r2", "baseline", 1).job) is None
