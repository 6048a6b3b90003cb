"""Canary rounds: opened, made by production, closed and judged, whatever breaks off."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import UnreadableRecordError, WorkloadLockedError
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.domain.records.production import RegistrationChange
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.records import load_registration, to_json
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
    register,
)
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    call_judge,
    damage_token,
    evidence,
    load,
    says,
)


def test_the_runs_that_production_made_no_longer_remain(services: Any) -> None:
    begun_round(services)
    before = evidence(services)["runs_remaining"]
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    for _ in range(2):
        call_judge(services, 5, [], says("promote"))

    assert before - 2 == evidence(services)["runs_remaining"]


@pytest.mark.parametrize(("began", "answers"), [({}, {"first"}), ({"started_at": 0.0}, set())])
def test_production_that_moved_on_to_another_job_ends_the_trial_undecided(
    services: Any, began: dict[str, float], answers: set[str]
) -> None:
    """A run of before the round says nothing of what production trains now."""
    begun_round(services)
    produce(services, "r1", "baseline", None, job="another", **began)

    assert answers == set(services.tokens.answers)
    if answers:
        assert "changed" == services.tokens.answers["first"]["reason"]
        answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
        assert ("inconclusive", "production_changed") == (answer["verdict"], reason(services))


def test_a_round_that_was_not_finished_ends_the_trial_undecided_and_keeps_its_runs(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)
    answer = call_judge(services, 5, [], asks("baseline 17"))

    assert ("inconclusive", "canary_overdue") == (answer["verdict"], reason(services))
    assert "overdue" == ended_with(services)
    assert [0, 1] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_a_verdict_needs_no_further_round_however_the_last_one_ended(services: Any) -> None:
    begun_round(services)

    assert "stay_off" == call_judge(services, 5, [], says("stay_off"))["verdict"]


def test_a_late_repetition_of_the_judge_leaves_the_round_that_it_began(services: Any) -> None:
    begun_round(services)
    call_judge(services, 4, [], asks("compile 17", "baseline 17"))

    assert ended_with(services) is None
    assert next_slot(services) is not None


def test_production_carries_no_round_whose_lost_candidate_the_budget_could_not_bear(
    services: Any,
) -> None:
    begin(services)
    document = evidence(services)
    document["plan"]["usd_by_job"]["j"] = load(services, "plan")["max_trial_usd"] - 1
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))
    answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
    assert ("inconclusive", "trial_over_budget") == (answer["verdict"], reason(services))

    answer = call_judge(services, 5, [], asks("baseline 17"))
    assert "canary" == answer["next_stage"]


def test_the_lock_outlives_the_round(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer)

    wait = answer["canary"]["timeout_seconds"]
    assert wait > 3600
    assert services.clock.now() + wait + LOCK_SECONDS == services.locks.held["bert-docs"][1]
    with pytest.raises(WorkloadLockedError):
        acquire_lock({**EVENT, "trial": "another1", "execution": "x"}, services=services)


@pytest.mark.timeout(20)
def test_a_damaged_wait_ends_the_step_instead_of_repeating_it(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    damage_token(services)

    with pytest.raises(UnreadableRecordError, match="canary_token"):
        open_round(services, answer, "second")


@pytest.mark.parametrize("given_up", [True, False])
def test_of_two_waits_the_newer_one_is_answered_first(services: Any, given_up: bool) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    if given_up:
        services.tokens.waiting.clear()
    open_round(services, answer, "second")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)

    expected = ["second"] if given_up else ["second", "first"]
    assert expected == list(services.tokens.answers)
    assert 1 == len(list(services.ledger.history("bert-docs").rounds))


def test_a_wait_that_begins_after_the_end_is_answered_at_once(services: Any) -> None:
    answer = begin(services)
    open_round(services, answer, "first")
    produce(services, "r1", "compile", 0)
    produce(services, "r2", "baseline", 1)
    reply = open_round(services, answer, "second")

    assert "complete" == reply["closed"]
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
    monkeypatch.setattr(
        services.ledger.raw, "put_once", crashing.around(services.ledger.raw.put_once)
    )
    message = crashing.around(services.tokens.send_success)
    monkeypatch.setattr(services.tokens, "send_success", message)
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
    (rounds,) = list(services.ledger.history("bert-docs").rounds)
    assert ("complete", True, ("first",)) == (rounds.closed, rounds.reported, rounds.tokens)
    assert ["r1", "r2"] == [
        entry["run"] for entry in services.ledger.raw.entries("bert-docs") if entry["kind"] == "run"
    ]


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


def test_a_trial_whose_workload_is_retired_goes_on_at_once_and_ends_undecided(
    services: Any,
) -> None:
    begun_round(services)
    take_out(services, dry_run=True)
    assert (None, {}) == (ended_with(services), services.tokens.answers)

    assert "retired" == take_out(services)

    assert ("retired", None) == (ended_with(services), next_slot(services))
    assert {"first": RETIRED_ANSWER} == services.tokens.answers
    answer = call_judge(services, 5, [], asks("compile 17", "baseline 17"))
    assert ("inconclusive", "production_retired") == (answer["verdict"], reason(services))


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


def test_a_workload_that_is_registered_again_carries_the_next_round(services: Any) -> None:
    answer = begin(services)
    take_out(services)
    again = {
        "kind": "registered", "at": services.clock.now(), "by": "human:ada", "revision": 2,
        "changes": [], "registration": {},
    }  # fmt: skip
    services.ledger.raw.put_once("bert-docs", RegistrationChange.key_of(revision=2), again)
    register(services)

    assert open_round(services, answer)["closed"] is None
    assert 0 == next_slot(services).canary.position


def _lost(*_: Any) -> bool:
    raise ConnectionError
