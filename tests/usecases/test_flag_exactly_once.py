"""Several writers of a flag in every order of their calls, some of whom crash.

Whatever happens, after running again the ledger and the parameter agree, nothing is lost and
nothing is doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.records.flags import FlagVersion
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import Changed, change_flag, repair_flag
from tests import fakes
from tests.usecases.flag_changes import FLAG, FLAGS, WORKLOAD, assert_sound, flag_change, history
from tests.usecases.interleaving import Move, every_run, run

NOW = fakes.FixedClock().now()


def world(before: Sequence[str] = ()) -> Services:
    """Services in memory in which these changes were made."""
    services = fakes.services("prod")
    for number, kind in enumerate(before):
        change = flag_change(kind, f"before#{number}", decided_at=NOW + 1)
        change_flag(WORKLOAD, change, services=services)
    return services


def writer(
    change: FlagVersion, answers: dict[str, Changed] | None = None
) -> Callable[[Services], Any]:
    """Makes the change, and keeps the answer under its id."""

    def work(services: Services) -> None:
        answer = change_flag(WORKLOAD, change, services=services)
        if answers is not None:
            answers[change.change_id] = answer

    return work


# Two changes at once, and what stood before them.
PAIRS = {
    "promotion and a person's no": ((), "enable", "human revert"),
    "a person's yes and no": (("enable",), "human set", "human revert"),
    "regression and a person's yes": (("enable",), "revert", "human set"),
    "staleness and the end of probation": (("enable",), "stale", "permanent"),
    "regression and promotion": (("enable",), "revert", "enable"),
    "late regression and another candidate": (("enable",), "late revert", "other enable"),
    "late end of probation and another candidate": (("enable",), "late permanent", "other enable"),
    "late staleness and a person's other candidate": (("enable",), "late stale", "human set"),
}


# Of two times four calls, of which many reads come to the same in either order.
FEWEST_ORDERS = 8


@pytest.mark.parametrize("decided_at", [NOW - 1, NOW + 1], ids=["older", "newer"])
@pytest.mark.parametrize("name", PAIRS)
def test_two_writers_at_once_in_every_order(name: str, decided_at: int) -> None:
    before, *kinds = PAIRS[name]
    changes = [flag_change(kind, decided_at=decided_at) for kind in kinds]
    answers: dict[str, Changed] = {}
    works = [writer(change, answers) for change in changes]
    orders = 0
    for services, done in every_run(lambda: world(before), works):
        assert_sound(services)
        made = {entry["change_id"] for entry in history(services)}
        for change in changes:  # what is not in the ledger was said not to be made, and why
            answer = answers[change.change_id]
            assert answer.changed is (change.change_id in made), done.moves
            assert answer.changed or not change.by_human, done.moves
            because = answer.held_by or answer.superseded_by
            assert answer.changed or because or kinds[0] == "revert", done.moves
        orders += 1

    assert orders >= FEWEST_ORDERS


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["promotion and a person's no", "regression and promotion",
     "late end of probation and another candidate"],
)  # fmt: skip
def test_two_writers_in_every_order_of_whom_one_crashes(name: str) -> None:
    before, *kinds = PAIRS[name]
    changes = [flag_change(kind, decided_at=NOW - 1) for kind in kinds]
    for services, done in every_run(lambda: world(before), [writer(c) for c in changes], crashes=1):
        for index in done.crashed:
            change_flag(WORKLOAD, changes[index], services=services)
        assert_sound(services)


def test_repairing_while_somebody_changes_the_flag_loses_nothing() -> None:
    def lost() -> Services:
        services = world(["enable"])
        services.flags.write(FLAG, "written by hand")
        return services

    works = [writer(flag_change("human revert")), lambda services: repair_flag(WORKLOAD, services)]
    for services, done in every_run(lost, works):
        assert_sound(services)
        assert 2 == len(history(services)), done.moves


@given(
    kinds=st.lists(st.sampled_from(sorted(FLAGS)), min_size=1, max_size=4),
    decided_at=st.sampled_from([NOW - 1, NOW + 1]),
    crashes=st.integers(0, 3),
    data=st.data(),
)
def test_any_number_of_writers_with_any_crashes(
    kinds: list[str], decided_at: int, crashes: int, data: st.DataObject
) -> None:
    """Those that crashed run again at once, and may crash again, until all have ended."""
    changes = [flag_change(kind, f"{kind}#{i}", decided_at) for i, kind in enumerate(kinds)]
    services = world()

    def choose(at: int, moves: list[Move]) -> Move:
        return data.draw(st.sampled_from(moves))

    waiting = changes
    while waiting:
        done = run(services, [writer(change) for change in waiting], choose, crashes)
        crashes -= len(done.crashed)
        waiting = [waiting[index] for index in done.crashed]

    assert_sound(services)
    made = {entry["change_id"] for entry in history(services)}
    assert {change.change_id for change in changes if change.by_human} <= made
    assert made <= {change.change_id for change in changes}
