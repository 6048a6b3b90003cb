"""Registering survives a crash at every write, and two who register at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilegate.domain import codec
from compilegate.ports import Services
from compilegate.usecases.registration import RegistrationOutcome
from tests.usecases.registration_builder import KEY, NIGHTLY, WEEKLY, Production, asked, scheduled


class Crash(BaseException):
    """The process is gone."""


WRITES = (
    ("store", "put"),
    ("store", "put_stream"),
    ("ledger", "put_once"),
    ("schedules", "put"),
    ("schedules", "remove"),
)


def crash_at(production: Production, number: int, *, after: bool) -> None:
    """End the process at its write of that number, just before or just after it takes effect."""
    count = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == number and not after:
                raise Crash
            answer = original(*arguments, **named)
            if count == number:
                raise Crash
            return answer

        return write

    ledger: Any = production.services.ledger
    owners: dict[str, Any] = {
        "store": production.store, "ledger": ledger.raw, "schedules": production.schedules,
    }  # fmt: skip
    for owner, name in WRITES:
        one = owners[owner]
        setattr(one, name, counted(getattr(one, name)))


def restarted(production: Production) -> Production:
    """The same stores as another process finds them."""
    again = Production()
    again.store.objects = production.store.objects
    ledger: Any = again.services.ledger
    crashed: Any = production.services.ledger
    ledger.raw.items = crashed.raw.items
    again.schedules.expressions = production.schedules.expressions
    return again


# Action, and how many writes it makes: three uploads of a new workload, then ledger,
# registration, schedule, registration.
ACTIONS: dict[str, tuple[Callable[[Production], RegistrationOutcome], int]] = {
    "new": (lambda production: production.register(), 7),
    "update": (lambda production: production.register(asked(scheduled(WEEKLY))), 5),
    "unschedule": (lambda production: production.register(asked(scheduled(None))), 5),
    "retire": (lambda production: production.retire(), 4),
}
CRASHES = [
    (action, number, after)
    for action, (_, writes) in ACTIONS.items()
    for number in range(1, writes + 1)
    for after in (False, True)
]


def outcome(production: Production) -> tuple[Any, ...]:
    return (
        production.store.objects,
        production.schedules.expressions,
        production.history(),
    )


@pytest.mark.parametrize(("action", "number", "after"), CRASHES)
def test_running_it_again_after_a_crash_comes_to_the_same(
    action: str, number: int, after: bool
) -> None:
    act, _ = ACTIONS[action]
    undisturbed, crashed = Production(), Production()
    for production in (undisturbed, crashed):
        if action != "new":
            production.register()
    act(undisturbed)
    crash_at(crashed, number, after=after)
    with pytest.raises(Crash):
        act(crashed)
    again = restarted(crashed)

    act(again)

    assert outcome(undisturbed) == outcome(again)


@pytest.mark.parametrize(("action", "writes"), [(name, n) for name, (_, n) in ACTIONS.items()])
def test_the_table_of_crashes_knows_every_write(action: str, writes: int) -> None:
    production = Production()
    if action != "new":
        production.register()
    crash_at(production, writes + 1, after=False)

    ACTIONS[action][0](production)  # makes no more writes than the table crashes at


@pytest.mark.parametrize("number", range(1, 6))
def test_an_update_that_crashed_can_be_taken_back(number: int) -> None:
    production = Production()
    production.register()
    crash_at(production, number, after=True)
    with pytest.raises(Crash):
        production.register(asked(scheduled(WEEKLY)))
    again = restarted(production)

    again.register()

    assert {"bert-docs": NIGHTLY} == again.schedules.expressions
    assert NIGHTLY == again.registered().schedule
    assert again.registered().settled


class Interleaved:
    """Runs another registration inside this one's write of that number."""

    def __init__(self, services: Services, other: Callable[[], object], number: int) -> None:
        self._store, self._other, self._left = services.store, other, number
        self._put = services.store.put
        services.store.put = self.put  # type: ignore[method-assign]

    def put(self, key: str, body: bytes, content_type: str = "application/json") -> None:
        if key == KEY:
            self._left -= 1
            if self._left == 0:
                self._other()
        self._put(key, body, content_type)


@pytest.mark.parametrize("number", [1, 2])
def test_two_that_register_at_once_leave_ledger_registration_and_schedule_agreed(
    number: int,
) -> None:
    production = Production()
    production.register()
    Interleaved(production.services, lambda: production.register(asked(scheduled(WEEKLY))), number)

    production.register(asked(scheduled(None)))

    latest = production.services.ledger.raw.entries("bert-docs")[-1]["registration"]
    assert WEEKLY == latest["schedule"]  # the other was recorded later
    assert latest == codec.write(production.registered())
    assert {"bert-docs": WEEKLY} == production.schedules.expressions
