"""Canary rounds: opened, made by production, closed and judged, whatever breaks off."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.records import load_registration
from compilegate.usecases.registration import RegisterOptions, retire
from compilegate.usecases.trial.lock import acquire_lock
from tests.fakes import MemorySchedules
from tests.usecases.canary_builder import (
    JOB,
    asks,
    begin,
    begun_round,
    ended_with,
    next_slot,
    open_round,
    produce,
    reason,
)
from tests.usecases.trial_builder import (
    EVENT,
    call_judge,
    evidence,
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


def test_a_wait_that_begins_after_the_end_is_answered_at_once(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    reply = open_round(services, answer, "second")

    assert "complete" == reply["closed"]
    assert [True] == [one.reported for one in services.ledger.history("bert-docs").rounds]
    assert {"first", "second"} == set(services.tokens.answers)


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
