"""The steps that change a flag, cut off at each of their calls and run again from the start.

What a step is: ApplyFlag of a promotion, of a proven loss and of an approved promotion, a person's
``set`` and ``revert``, and a person's answer. Running again comes to what an undisturbed run does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.flag_change import Override
from compilegate.ports import Services
from compilegate.usecases.flag.approval import (
    answer_approval,
    ask_approval,
    await_approval,
    close_approval,
)
from compilegate.usecases.flag.change_flag import (
    change_flag,
    find_candidate,
    revert_by_hand,
    set_by_hand,
)
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.apply_flag import apply_flag, record_decision
from compilegate.usecases.trial.lock import acquire_lock
from tests import fakes
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND, change
from tests.usecases.flag_changes import FLAG, WORKLOAD, assert_sound, flag_change
from tests.usecases.interleaving import AFTER, BEFORE, GO, Crash, Stepped
from tests.usecases.trial_builder import EVENT, TRIAL, put_spec

ANA = Override("ana", "because")
KEY = naming.record_key(WORKLOAD, TRIAL, "decision")
TOKEN = "waits"
Step = Callable[[Services], Any]


def world(verdict: str, action: str, approval: str = "none") -> Services:
    """A decided trial of a workload whose flag has been on since before."""
    services = fakes.services("prod")
    put_spec(services, change(SOUND, policy__approval=approval))
    change_flag(WORKLOAD, flag_change("human set"), services=services)
    services.clock.seconds += 60  # type: ignore[attr-defined] - a clock that can be moved
    acquire_lock(EVENT, services=services)
    plan_trial(EVENT, services=services)
    decision = decision_document(verdict, flag={"name": FLAG, "action": action})
    services.store.put(KEY, to_json(decision))
    record_decision({**EVENT, "decision_key": KEY}, services=services)
    return services


def asked() -> Services:
    """A promotion that waits for a person."""
    services: Any = world("promote", "enable", "required")
    ask_approval({**EVENT, "decision_key": KEY}, services=services)
    services.tokens.waiting.add(TOKEN)
    await_approval({**EVENT, "token": TOKEN}, services=services)
    return services  # type: ignore[no-any-return]


def answered() -> Services:
    """A promotion that a person has agreed to."""
    services = asked()
    answer_approval(WORKLOAD, ANA, approved=True, services=services)
    return services


def apply(services: Services) -> Any:
    return apply_flag({**EVENT, "decision_key": KEY}, services=services)


def close_and_apply(services: Services) -> Any:
    close_approval(EVENT, services=services)
    return apply(services)


STEPS: dict[str, tuple[Callable[[], Services], Step]] = {
    "a promotion": (lambda: world("promote", "enable"), apply),
    "a proven loss": (lambda: world("stay_off", "disable"), apply),
    "an approved promotion": (answered, close_and_apply),
    "an unanswered promotion": (asked, close_and_apply),
    "a person's set": (
        lambda: world("inconclusive", "keep"),
        lambda s: set_by_hand(WORKLOAD, find_candidate(WORKLOAD, "compile", s), ANA, services=s),
    ),
    "a person's revert": (
        lambda: world("inconclusive", "keep"),
        lambda s: revert_by_hand(WORKLOAD, ANA, services=s),
    ),
    "a person's yes": (asked, lambda s: answer_approval(WORKLOAD, ANA, approved=True, services=s)),
}


def run(services: Any, step: Step, number: int | None = None, how: str = GO) -> bool:
    """Make the step, with a crash at its ``number``-th call; returns whether it got there."""
    turns = iter([GO] * (number or 0) + [how if number is not None else GO])

    def stepped(store: Any) -> Any:
        return Stepped(store, lambda: next(turns, GO))

    stores = {name: stepped(getattr(services, name)) for name in ("ledger", "flags", "tokens")}
    store = stepped(services.store)
    store.bucket = services.store.bucket
    try:
        step(replace(services, store=store, **stores))
    except Crash:
        return True
    return False


def state(services: Any) -> tuple[Any, ...]:
    """Everything that a step can leave behind."""
    return (
        dict(services.ledger.raw.items), dict(services.store.objects), dict(services.flags.values),
        dict(services.tokens.answers),
    )  # fmt: skip


@pytest.mark.parametrize("how", [BEFORE, AFTER])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_cut_off_at_any_call_comes_to_the_same_by_running_again(name: str, how: str) -> None:
    make, step = STEPS[name]
    undisturbed = make()
    run(undisturbed, step)

    number = 0
    services = make()
    while run(services, step, number, how):
        run(services, step)
        assert state(undisturbed) == state(services), (number, how)
        assert_sound(services)
        number, services = number + 1, make()

    assert number >= 4
