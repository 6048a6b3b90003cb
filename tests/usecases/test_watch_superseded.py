"""A look that died before it changed the flag, tried again after something else was turned on."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import EVALUATE, FlagChange
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.production.watch_production import watch_production
from tests.usecases.production_builder import (
    WORKLOAD,
    entries,
    flag_entries,
    flag_of,
    promote,
    record,
    watch,
)

BIGGER = Flag(True, "probation", "b48", {"batch_size": 48}, "d9")


@pytest.mark.parametrize("by", [EVALUATE, "human:ann"])
def test_a_late_revert_leaves_alone_what_was_turned_on_meanwhile(by: str, services: Any) -> None:
    promote(services)
    event = broken_off(services)
    newer = FlagChange("newer", by, "enable", BIGGER, "proven", services.clock.now() + 1,
                       details={"trial": "newer123"})  # fmt: skip
    change_flag(WORKLOAD, newer, services=services)

    answer = watch_production(event, services=services)

    assert not answer["flag_changed"]
    assert ("b48", True) == (flag_of(services).candidate, flag_of(services).enabled)
    assert ["enable", "enable"] == [entry["action"] for entry in flag_entries(services)]
    assert answer == watch_production(event, services=services)


def test_a_late_revert_is_made_where_the_candidate_is_still_on(services: Any) -> None:
    promote(services)
    answer = watch_production(broken_off(services), services=services)

    assert (True, "reverted") == (answer["flag_changed"], flag_of(services).state)


def broken_off(services: Any) -> dict[str, str]:
    """The look that settles on a revert, and dies before it appends to the flag's history."""
    record(services, 1, finished=False, metric=None)
    run = record(services, 2, finished=False, metric=None).run
    kept = services.ledger.put_once

    def dies(workload: str, sort_key: str, entry: Any) -> Any:
        if sort_key.startswith("flag#"):
            raise ConnectionError("gone")
        return kept(workload, sort_key, entry)

    services.ledger.put_once = dies
    with pytest.raises(ConnectionError):
        watch(services, run)
    services.ledger.put_once = kept
    assert (
        "revert" == next(e for e in entries(services) if e["kind"] == "watch")["change"]["action"]
    )
    return {"workload": WORKLOAD, "run": run}
