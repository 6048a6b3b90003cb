"""A person and the machine, and two who register: at once, in every order of their calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest

from compilegate.domain.errors import CompilegateError
from compilegate.domain.flag_change import Override
from compilegate.ports import Services
from compilegate.usecases.flag.approval import answer_approval
from compilegate.usecases.flag.change_flag import find_candidate, revert_by_hand, set_by_hand
from compilegate.usecases.production import announce_review
from compilegate.usecases.registration import register, retire
from tests import fakes
from tests.domain.production.run_builder import production_run
from tests.usecases import test_flag_steps_exactly_once as trial
from tests.usecases.flag_changes import WORKLOAD, assert_sound, history
from tests.usecases.interleaving import beside, every_run
from tests.usecases.production_builder import promote, record, watch
from tests.usecases.registration_builder import ME, WEEKLY, Production, asked, scheduled

Work = Callable[[Services], Any]
ANA, BEN = Override("ana", "because"), Override("ben", "no")
PORTS = ("ledger", "flags", "tokens")


def promoting() -> Services:
    """A trial that is about to turn the flag on."""
    return trial.world("promote", "enable")


def reverting() -> Services:
    """Production whose second failure in a row has not been looked at."""
    services: Any = fakes.services("prod")
    promote(services)
    for number in (1, 2):
        record(services, number, finished=False, metric=None)
    return services  # type: ignore[no-any-return]


def look(services: Services) -> Any:
    return watch(services, production_run(2).run)


def sets(services: Services) -> Any:
    return set_by_hand(WORKLOAD, find_candidate(WORKLOAD, "compile", services), ANA,
                       services=services)  # fmt: skip


def reverts(services: Services) -> Any:
    return revert_by_hand(WORKLOAD, BEN, services=services)


def answers(who: Override, yes: bool) -> Work:
    def work(services: Services) -> None:
        with suppress(CompilegateError):  # the other was first, or the trial went on
            answer_approval(WORKLOAD, who, approved=yes, services=services)

    return work


# What stands before, the machine's step, a person's, and who may have the last word.
CASES: dict[str, tuple[Callable[[], Services], Work, Work]] = {
    "a promotion, a person's no": (promoting, trial.apply, reverts),
    "a promotion, a person's yes": (promoting, trial.apply, sets),
    "an approved promotion, another's no": (trial.answered, trial.close_and_apply, reverts),
    "a question that runs out, a yes": (trial.asked, trial.close_and_apply, answers(ANA, True)),
    "a yes, a no": (trial.asked, answers(ANA, True), answers(BEN, False)),
    "a regression, a person's no": (reverting, look, reverts),
}  # fmt: skip
LONG = ("a regression, a person's no",)  # every look judges


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.slow if one in LONG else ()) for one in CASES],
)
def test_person_and_machine_at_once_leave_one_history_and_its_flag(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages and message come after the flag is right, and take a second.
    monkeypatch.setattr(announce_review, "announce_review", lambda *_: {})
    make, first, second = CASES[name]
    before = make()
    known = len(history(before))
    for after, done in every_run(lambda: deepcopy(before), [first, second], ports=PORTS):
        assert_sound(after)
        words = [entry["by"] for entry in history(after)[known:]]
        by_hand = sum(work in (sets, reverts) for work in (first, second))
        assert by_hand == sum(by.startswith("human:") for by in words), done.moves
        assert len(words) == len(set(words)), done.moves


Act = Callable[[Services, Any], Any]
REGISTRATIONS: dict[str, tuple[Act, Act]] = {
    "another schedule, none": (
        lambda s, at: register(asked(scheduled(WEEKLY)), services=s, schedules=at, options=ME),
        lambda s, at: register(asked(scheduled(None)), services=s, schedules=at, options=ME),
    ),
    "another schedule, retired": (
        lambda s, at: register(asked(scheduled(WEEKLY)), services=s, schedules=at, options=ME),
        lambda s, at: retire(WORKLOAD, services=s, schedules=at, options=ME),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRATIONS)
def test_two_that_register_at_once_leave_ledger_registration_and_schedule_agreed(
    name: str,
) -> None:
    production = Production()
    production.register()
    # Part of what is stored, so that orders are told apart by the schedules as well.
    production.store.schedules = production.schedules.expressions

    def work(act: Act) -> Work:
        def acts(services: Services) -> None:
            schedules = fakes.MemorySchedules()
            schedules.expressions = services.store.schedules
            act(services, beside(services.store, schedules))

        return acts

    works = [work(act) for act in REGISTRATIONS[name]]
    for after, done in every_run(lambda: deepcopy(production.services), works,
                                 ports=("ledger", "store")):  # fmt: skip
        latest = after.ledger.raw.entries(WORKLOAD)[-1]["registration"]
        agreed = {WORKLOAD: latest["schedule"]} if latest["schedule"] and latest["active"] else {}
        assert agreed == after.store.schedules, done.moves
