"""A workload taken out of production while a trial waits for its runs."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import ledger_keys
from compilegate.usecases.registration.load import load_registration
from compilegate.usecases.registration.register import RegisterOptions, retire
from tests.fakes import MemorySchedules
from tests.usecases.canary_builder import (
    asks,
    begin,
    begun_round,
    ended_with,
    next_slot,
    open_round,
    produce,
    reason,
    register,
    tag_of,
)
from tests.usecases.trial_builder import call_judge, says

TOLD = {"round": 4, "reason": "retired"}


def take_out(services: Any, **changes: Any) -> str:
    asked = RegisterOptions(by="human:ada", **changes)
    return retire("bert-docs", services=services, schedules=MemorySchedules(), options=asked).what


def test_the_trial_goes_on_at_once_and_ends_undecided(services: Any) -> None:
    begun_round(services)

    assert "retired" == take_out(services)

    assert ("retired", None) == (ended_with(services), next_slot(services))
    assert {"first": TOLD} == services.tokens.answers
    answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
    assert ("inconclusive", "production_retired") == (answer["verdict"], reason(services))


def test_a_verdict_that_the_runs_so_far_allow_stands(services: Any) -> None:
    begun_round(services)
    take_out(services)

    assert "promote" == call_judge(services, 5, [], says("promote"))["verdict"]


def test_a_dry_run_ends_nothing(services: Any) -> None:
    begun_round(services)

    take_out(services, dry_run=True)

    assert (None, {}) == (ended_with(services), services.tokens.answers)


def test_a_removal_that_died_before_the_trial_was_told_is_finished_by_the_next(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_round(services)
    with monkeypatch.context() as broken:
        broken.setattr(services.tokens, "send_success", _lost)
        with pytest.raises(ConnectionError):
            take_out(services)
    assert not load_registration(services.store, "bert-docs").active

    assert "unchanged" == take_out(services)
    assert {"first": TOLD} == services.tokens.answers


def test_a_round_that_is_asked_for_after_the_removal_ends_before_it_waits(services: Any) -> None:
    answer = begin(services)
    take_out(services)

    assert "retired" == open_round(services, answer)["closed"]
    assert {"first": TOLD} == services.tokens.answers


def test_a_workload_that_is_registered_again_carries_the_next_round(services: Any) -> None:
    answer = begin(services)
    take_out(services)
    again = {
        "kind": "registered", "at": services.clock.now(), "by": "human:ada", "revision": 2,
        "changes": [], "registration": {},
    }  # fmt: skip
    services.ledger.put_once("bert-docs", ledger_keys.registered_entry(2), again)
    register(services)

    assert open_round(services, answer)["closed"] is None
    assert 0 == next_slot(services).slot.position


def test_a_candidate_that_was_on_its_way_is_rejected(services: Any) -> None:
    begun_round(services)
    take_out(services)

    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)


def _lost(*_: Any) -> bool:
    raise ConnectionError
