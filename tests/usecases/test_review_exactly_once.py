"""Looks that die, are repeated, come late or at once: one decision, one change."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.records.flags import FlagVersion
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.production.review_production import review_production
from tests import fakes
from tests.usecases.production_builder import (
    WORKLOAD,
    entries,
    flag_entries,
    flag_of,
    promote,
    record,
    watch,
)


def snapshot(services: Any) -> tuple[Any, ...]:
    return (
        dict(services.ledger.raw.items),
        dict(services.flags.values),
        dict(services.store.objects),
    )


def writes(services: Any, dies_at: int) -> list[str]:
    """Everything that is written from now on, by name; the process dies before that one."""
    made: list[str] = []

    def watched(what: str, write: Any) -> Any:
        def call(*args: Any) -> Any:
            if len(made) == dies_at:
                raise SystemExit(what)
            made.append(what)
            return write(*args)

        return call

    services.store.put = watched("store", services.store.put)
    services.ledger.raw.put_once = watched("ledger", services.ledger.raw.put_once)
    services.flags.write = watched("flag", services.flags.write)
    return made


def two_crashes(dies_at: int) -> tuple[Any, list[str]]:
    """A look that reverts, which dies once and is tried again."""
    services = fakes.services("prod")
    promote(services)
    event = {"workload": WORKLOAD}
    for number in (1, 2):
        event["run"] = record(services, number, finished=False, metric=None).run
    real = services.store.put, services.ledger.raw.put_once, services.flags.write
    made = writes(services, dies_at)
    try:
        review_production(event, services=services)
    except SystemExit:
        services.store.put, services.ledger.raw.put_once, services.flags.write = real
        review_production(event, services=services)
    return services, made


def test_a_look_that_dies_before_any_of_its_writes_is_finished_by_the_next_try() -> None:
    whole, made = two_crashes(dies_at=1000)

    assert {"store", "ledger", "flag"} == set(made)
    for boundary in range(len(made)):
        again, _ = two_crashes(dies_at=boundary)
        assert snapshot(whole) == snapshot(again), f"before write {boundary}: {made[boundary]}"


BIGGER = Flag(True, "probation", "b48", {"batch_size": 48}, "d9")


@pytest.mark.parametrize("by", [EVALUATE, "human:ann"])
def test_a_late_revert_leaves_alone_what_was_turned_on_meanwhile(by: str, services: Any) -> None:
    promote(services)
    event = broken_off(services)
    newer = FlagVersion(0, 0, "newer", by, "enable", "proven", BIGGER.to_json(),
                        decided_at=services.clock.now() + 1,
                        details={"trial": "newer123"})  # fmt: skip
    change_flag(WORKLOAD, newer, services=services)

    answer = review_production(event, services=services)

    assert not answer["flag_changed"]
    assert ("b48", True) == (flag_of(services).candidate, flag_of(services).enabled)
    assert ["enable", "enable"] == [entry["action"] for entry in flag_entries(services)]
    assert answer == review_production(event, services=services)


def broken_off(services: Any) -> dict[str, str]:
    """The look that settles on a revert, and dies before it appends to the flag's history."""
    record(services, 1, finished=False, metric=None)
    run = record(services, 2, finished=False, metric=None).run
    kept = services.ledger.raw.put_once

    def dies(workload: str, sort_key: str, entry: Any) -> Any:
        if sort_key.startswith("flag#"):
            raise ConnectionError("gone")
        return kept(workload, sort_key, entry)

    services.ledger.raw.put_once = dies
    with pytest.raises(ConnectionError):
        watch(services, run)
    services.ledger.raw.put_once = kept
    assert (
        "revert" == next(e for e in entries(services) if e["kind"] == "review")["change"]["action"]
    )
    return {"workload": WORKLOAD, "run": run}
