"""A promotion that waits for a person: asked once, answered once, silence is a no."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import SIGNAL
from compilegate.domain.errors import InvalidInputError, UnreadableRecordError
from compilegate.domain.flag_change import Override
from compilegate.domain.notes import read_notes
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.domain.records.trials import WAIT_SECONDS, ApprovalRequested
from compilegate.report.notifications.approval import approval_needed
from compilegate.usecases.flag.approval import (
    abandon_approval,
    answer_approval,
    ask_approval,
    await_approval,
    close_approval,
    question,
    waiting_approvals,
)
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import Trial, load_decision, to_json
from compilegate.usecases.trial.apply_flag import apply_flag, record_decision
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND, change
from tests.usecases.flag_changes import flag_change
from tests.usecases.trial_builder import EVENT, FLAG, SPEC, TRIAL, damage_token, put_spec

ANA = Override("ana", "looks right")
NAME = "bert-docs"


@pytest.fixture
def event(services: Any) -> dict[str, Any]:
    """A promotion of a workload that asks for approval."""
    put_spec(services, change(SOUND, policy__approval="required"))
    acquire_lock(EVENT, services=services)
    return decided(services, "promote", "enable")


def decided(
    services: Any, verdict: str, action: str, code: str = "speedup_proven"
) -> dict[str, Any]:
    plan_trial(EVENT, services=services)
    key = naming.record_key(NAME, TRIAL, "decision")
    reasons = [{"code": code, "message": "what gap did"}]
    decision = decision_document(verdict, flag={"name": FLAG, "action": action}, reasons=reasons)
    services.store.put(key, to_json(decision))
    return {**EVENT, "decision_key": key}


def asked(services: Any, event: dict[str, Any], token: str = "t1") -> dict[str, Any]:
    """The machine waits with this token."""
    message = ask_approval(event, services=services)
    services.tokens.waiting.add(token)
    await_approval({**event, "token": token}, services=services)
    return message


def answer(services: Any, approved: bool, word: Override = ANA) -> Any:
    return answer_approval(NAME, word, approved=approved, services=services)


def applied(services: Any, event: dict[str, Any]) -> dict[str, Any]:
    """What the machine does once the wait has ended."""
    close_approval(event, services=services)
    return apply_flag(event, services=services)


@pytest.mark.parametrize(
    ("approval", "action", "code", "needed"),
    [("none", "enable", "speedup_proven", False), ("none", "enable", SIGNAL, True),
     ("required", "enable", "speedup_proven", True), ("required", "disable", SIGNAL, False),
     ("required", "keep", SIGNAL, False)],
)  # fmt: skip
def test_a_promotion_of_a_workload_that_says_so_or_on_a_signal_alone_needs_approval(
    approval: str, action: str, code: str, needed: bool, services: Any
) -> None:
    put_spec(services, change(SOUND, policy__approval=approval))
    event = decided(services, "promote", action, code)

    assert needed is record_decision(event, services=services)["approval_needed"]
    assert (action == "enable" and not needed) is apply_flag(event, services=services)["enabled"]


@pytest.mark.parametrize("broken", [False, True])
def test_a_question_is_put_with_owner_and_remarks_unless_the_spec_cannot_be_read_any_more(
    services: Any, *, broken: bool
) -> None:
    """What a compiling script's saving is against is such a remark."""
    put_spec(services, change(SOUND, policy__approval="required", owner="ben"))
    spec = json.loads(services.store.get(SPEC))
    spec["script_compiles"] = {"script": "train.py", "line": 3, "source": "torch.compile(m)"}
    services.store.put(SPEC, to_json(spec))
    acquire_lock(EVENT, services=services)
    event = decided(services, "promote", "enable")
    if broken:
        services.store.put(SPEC, b"broken")
    services.clock.seconds += 60
    now, key = services.clock.now(), event["decision_key"]
    request = ApprovalRequested(
        now, now + 30 * 86400, TRIAL, EVENT["execution"], "d1", key, "compile"
    )
    message = approval_needed(
        load_decision(services.store, key), request, workload=NAME, trial=TRIAL, stage="prod",
        owner=None if broken else "ben", notes=() if broken else read_notes(spec),
    )  # fmt: skip

    assert message.to_answer() == ask_approval(event, services=services)
    assert broken is ("are against an uncompiled run" not in json.dumps(message.to_answer()))
    assert [request] == [one.asked for one in waiting_approvals(NAME, services.ledger)]
    # The lock outlives the wait.
    assert (EVENT["execution"], request.until + LOCK_SECONDS) == services.locks.held[NAME]


def test_a_person_answers_the_newest_open_question_of_several(
    services: Any, event: dict[str, Any]
) -> None:
    """A trial of which another one's name begins has no question of its own."""
    asked(services, event)
    services.clock.seconds += 60
    asked(services, {**event, "trial": "abcd1235"}, "t2")
    abandon_approval(Trial(NAME, "abcd", ""), services=services)
    with pytest.raises(LookupError, match="for trial abcd of bert-docs"):
        await_approval({**event, "trial": "abcd", "token": "t3"}, services=services)

    for trial in ("abcd1235", TRIAL):
        assert trial == question(NAME, services).trial
        assert trial == answer(services, approved=True).trial
    assert "abcd1235" == question(NAME, services).trial
    said = {"approved": True, "by": "human:ana", "reason": "looks right"}
    assert {"t1": said, "t2": said} == services.tokens.answers


def test_silence_is_a_no_and_is_written_down(services: Any, event: dict[str, Any]) -> None:
    asked(services, event)
    services.clock.seconds += WAIT_SECONDS

    reply = applied(services, event)

    assert not reply["enabled"]
    assert ("nobody", "nobody answered within 30 days") == (
        reply["approval"]["by"], reply["approval"]["reason"],
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match="was already answered: not approved by nobody"):
        answer(services, approved=True)


def test_without_any_answer_nothing_is_promoted(services: Any, event: dict[str, Any]) -> None:
    """Whoever calls ApplyFlag past the wait, or without having asked."""
    assert not apply_flag(event, services=services)["enabled"]
    asked(services, event)
    assert not apply_flag(event, services=services)["enabled"]
    assert services.flags.read(FLAG) is None


def test_an_answer_that_never_arrived_is_sent_again(services: Any, event: dict[str, Any]) -> None:
    asked(services, event)
    services.tokens.send_success = lost(services.tokens.send_success)
    with pytest.raises(ConnectionError):
        answer(services, approved=True)

    again = answer(services, approved=True)

    assert (True, True) == (again.repeated, again.woken)
    assert {"t1": {"approved": True, "by": "human:ana", "reason": "looks right"}} == (
        services.tokens.answers
    )


def lost(send: Any) -> Any:
    """The first call is cut off before it arrives."""
    calls = iter([True])

    def call(token: str, output: Any) -> Any:
        if next(calls, False):
            raise ConnectionError
        return send(token, output)

    return call


def test_an_answer_before_the_machine_waits_wakes_it_as_it_begins_to(
    services: Any, event: dict[str, Any]
) -> None:
    ask_approval(event, services=services)
    assert not answer(services, approved=True).woken

    services.tokens.waiting.add("late")
    assert await_approval({**event, "token": "late"}, services=services)["answered"]
    assert "late" in services.tokens.answers


@pytest.mark.timeout(20)
def test_a_damaged_wait_ends_the_step_instead_of_repeating_it(
    services: Any, event: dict[str, Any]
) -> None:
    asked(services, event, "first")
    damage_token(services)

    with pytest.raises(UnreadableRecordError, match="approval_token"):
        asked(services, event, "second")


def test_a_no_after_the_yes_outranks_it_though_its_clock_is_slow(
    services: Any, event: dict[str, Any]
) -> None:
    asked(services, event)
    answer(services, approved=True)
    services.clock.seconds -= 300
    change_flag(NAME, flag_change("human revert"), services=services)

    assert not applied(services, event)["enabled"]
