"""A run that got no machine waits, tries other types meanwhile, and gives up in the end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.begun import Attempt
from compilegate.domain.production.waiting import (
    FIRST_SECONDS,
    KIND,
    most_wait_seconds,
    next_wait,
)
from compilegate.ports import Services
from compilegate.usecases.production.ended import Ended
from compilegate.usecases.production.production_job import request_of
from compilegate.usecases.production.run_evidence import times

logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class Waiting:
    """What follows: ``first`` says that the run pauses for the first time."""

    seconds: int
    attempt: Attempt
    reason: str
    first: bool


def wait_for_capacity(
    ended: Ended, services: Services, *, first_seconds: float | None = None
) -> Waiting | None:
    """Write the wait down and say what follows; None where the run gives up.

    Repeating the call finds what was written. ``first_seconds`` replaces the first pause.
    """
    number, run = ended.attempt.number, ended.begun.run
    waits = [
        entry
        for entry in services.ledger.entries(ended.workload, ledger_keys.wait_entries(run))
        if entry.get("kind") == KIND and int(entry["attempt"]) < number
    ]
    found = next_wait(
        waits,
        _fallbacks(ended, services),
        most_wait_seconds(ended.spec.workload),
        first_seconds=FIRST_SECONDS if first_seconds is None else first_seconds,
    )
    if found is None:
        return None
    began, over = times(ended.described, otherwise=float(services.clock.now()))
    entry = {
        "kind": KIND,
        "at": services.clock.now(),
        "run": run,
        "attempt": number,
        "job": ended.job,
        "arm": ended.arm,
        "reason": ended.end.reason,
        "spent_seconds": over - began,
        "wait_seconds": found.seconds,
        "next_instance_type": found.instance_type,
    }
    written = services.ledger.put_once(ended.workload, ledger_keys.wait_entry(run, number), entry)
    return _waiting(written, ended, waits)


def _waiting(
    written: Mapping[str, Any], ended: Ended, waits: Sequence[Mapping[str, Any]]
) -> Waiting:
    seconds = int(written["wait_seconds"])
    attempt = Attempt(
        number=ended.attempt.number + 1,
        rerun=ended.attempt.rerun,
        instance_type=written["next_instance_type"],
    )
    first = seconds > 0 and not any(wait["wait_seconds"] for wait in waits)
    return Waiting(seconds, attempt, str(written["reason"]), first)


def _fallbacks(ended: Ended, services: Services) -> list[str]:
    """The types that the team allows and that its job can run on."""
    usable = []
    for kind in ended.spec.workload.training.fallback_instances:
        attempt = Attempt(number=ended.attempt.number + 1, instance_type=kind)
        try:
            request_of(ended.begun, attempt, ended.spec, services)
        except InvalidInputError as error:
            logger.warning("%s: no fallback to %s: %s", ended.workload, kind, error)
        else:
            usable.append(kind)
    return usable
