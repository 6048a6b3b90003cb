"""Waiting for a round: repeated, told late, and broken off at any place."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.production.history import history
from compilegate.usecases.production.canary import close_after_run
from compilegate.usecases.trial.lock import acquire_lock
from tests.usecases.canary_builder import (
    JOB,
    begin,
    begun_round,
    open_round,
    produce,
)
from tests.usecases.trial_builder import (
    EVENT,
)


def test_the_lease_is_held_for_as_long_as_the_round_may_last(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer)

    until = services.locks.held["bert-docs"][1]
    assert until > services.clock.now() + answer["canary"]["timeout_seconds"]
    with pytest.raises(WorkloadLockedError):
        acquire_lock({**EVENT, "trial": "another1", "execution": "x"}, services=services)


def test_of_two_waits_the_newer_one_is_told(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    services.tokens.waiting.clear()
    open_round(services, answer, "second")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)

    assert {"second"} == set(services.tokens.answers)
    assert 1 == len(list(history(services.ledger.entries("bert-docs")).rounds))


def test_a_wait_that_begins_after_the_end_is_told_at_once(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    found = open_round(services, answer, "second")

    assert "complete" == found["closed"]
    assert {"first", "second"} == set(services.tokens.answers)


@pytest.mark.parametrize("broken", ["put_once", "send_success"])
def test_what_a_crash_left_undone_the_next_production_run_does(
    services: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    place = services.ledger if broken == "put_once" else services.tokens
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


class Crashing:
    """Ends the process at one boundary: before or after the n-th thing that leaves it."""

    def __init__(self, boundary: int, *, after: bool) -> None:
        self.left, self.after = boundary, after

    def around(self, call: Any) -> Any:
        def crash(*arguments: Any) -> Any:
            self.left -= 1
            if self.left == -1 and not self.after:
                raise ConnectionError
            answer = call(*arguments)
            if self.left == -1:
                raise ConnectionError
            return answer

        return crash


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("boundary", range(9))
def test_a_crash_at_any_boundary_is_repaired_by_running_the_step_again(
    services: Any, monkeypatch: pytest.MonkeyPatch, boundary: int, after: bool
) -> None:
    answer = begin(services)
    crashing = Crashing(boundary, after=after)
    monkeypatch.setattr(services.ledger, "put_once", crashing.around(services.ledger.put_once))
    told = crashing.around(services.tokens.send_success)
    monkeypatch.setattr(services.tokens, "send_success", told)
    steps = [
        lambda: open_round(services, answer),
        lambda: produce(services, "r1", "compile", 0, started_at=1e9),
        lambda: produce(services, "r2", "baseline", 1, started_at=2e9),
    ]
    crashes = 0
    for step in steps:
        try:
            step()
        except ConnectionError:
            crashes += 1
            step()

    assert 1 == crashes
    assert {"first": {"round": 4, "reason": "complete"}} == services.tokens.answers
    (found,) = list(history(services.ledger.entries("bert-docs")).rounds)
    assert ("complete", True, ("first",)) == (found.closed, found.reported, found.tokens)
    assert ["r1", "r2"] == [
        entry["run"] for entry in services.ledger.entries("bert-docs") if entry["kind"] == "run"
    ]


def test_telling_is_repeated_by_nobody_once_it_is_written_down(services: Any) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    done = produce(services, "r2", "baseline", 1)
    services.tokens.waiting.add("first")
    close_after_run("bert-docs", done, job=JOB, services=services)

    assert {"first"} == services.tokens.waiting
