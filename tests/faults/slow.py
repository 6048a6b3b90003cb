"""Faults of time: answers that come too late, and clocks that disagree, in both directions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ReadTimeoutError

from compilegate.domain import ledger_keys
from tests.faults.machine import Entry, Execution
from tests.faults.rows import Row, Undisturbed, acted, ended
from tests.faults.world import NAME, Dead, Document, World

HOUR, DAY = 3600, 24 * 3600
EXPECTED = "no promotion that is not deserved"
SKEWS = (-400 * DAY, -HOUR, HOUR, 400 * DAY)
# compilegate/adapters/stores.py: five attempts of 20 s; stacks/functions.py: the longest function.
CLIENT_SECONDS, FUNCTION_SECONDS = 100, 540
Change = Callable[[World], None]


def late(of: Undisturbed) -> Iterator[Row]:
    """At every write and every call of S3: it happens, and the client no longer waits for it."""
    for point in of.points:
        if point.invocation and point.when == "after" and _slow(point.call, point.changes):
            yield Row(of.where(point), "the answer comes after the client's time",
                      "caught: aborted, or gone on without it",
                      partial(acted, of, point, _gives_up))  # fmt: skip


def too_late(of: Undisturbed) -> Iterator[Row]:
    """At every read of S3: the function's time is up before it answers."""
    for point in of.points:
        if point.when == "before" and point.call.startswith("store.") and not point.changes:
            yield Row(of.where(point), "the answer comes after the function's time",
                      "caught: aborted, or gone on without it",
                      partial(acted, of, point, _is_over))  # fmt: skip


def _slow(call: str, changes: bool) -> bool:
    return changes or call.startswith("store.")


def _gives_up(execution: Execution) -> None:
    execution.world.passes(CLIENT_SECONDS)
    raise ReadTimeoutError(endpoint_url="https://data.s3.us-east-1.amazonaws.com/")


def _is_over(execution: Execution) -> None:
    execution.world.passes(FUNCTION_SECONDS)
    raise Dead


class Skewed(Execution):
    """Its first function sees another time than all others."""

    seconds = 0

    def _lambda_invoke(self, request: Document) -> Document:
        seconds, self.seconds, self.refuse = self.seconds, 0, None
        self.world.passes(seconds)
        try:
            return super()._lambda_invoke(request)
        finally:
            self.world.passes(-seconds)


def clocks(of: Undisturbed) -> Iterator[Row]:
    """At every function: its own clock is wrong, that of the next one is right."""
    for number, entry in enumerate(of.execution.entries):
        for seconds in SKEWS[number % 2 :: 2]:
            yield Row(f"{of.name}, {entry.state}", f"its function's clock is {seconds:+} s off",
                      EXPECTED,
                      partial(_skewed, of, entry, seconds))  # fmt: skip


def _skewed(of: Undisturbed, entry: Entry, seconds: int) -> list[str]:
    one = of.execution
    execution = Skewed(one.machine, one.name, one.given, entry.world.copy(), waiting=one.waiting)
    execution.seconds, execution.refuse = seconds, lambda *_: None
    return ended(of, execution.run(entry))


def job_clocks(of: Undisturbed) -> Iterator[Row]:
    """Every job of the execution: the times that SageMaker tells of it are wrong."""
    ends = [point for point in of.points if point.what == "the job's end"]
    for number, point in enumerate(ends):
        where = f"{of.name}, job {number} of {point.state}"
        for seconds in SKEWS:
            yield Row(where, f"its times are {seconds:+} s off",
                      EXPECTED,
                      partial(acted, of, point, partial(_moved, seconds)),
                      )  # fmt: skip


def _moved(seconds: int, execution: Execution) -> None:
    """All times of the job that has just ended."""
    described = list(execution.world.services.jobs.descriptions.values())[-1]
    for key, value in described.items():
        if isinstance(value, datetime):
            described[key] = value + timedelta(seconds=seconds)


def locks(of: Undisturbed) -> Iterator[Row]:
    """At every state: the lock ends at another time, as another clock would have written it."""
    for number, entry in enumerate(of.execution.entries):
        if entry.world.services.locks.holder(NAME) is not None:
            for seconds in SKEWS[number % 2 :: 2]:
                yield Row(f"{of.name}, before {entry.state}", f"the lock ends {seconds:+} s off",
                          EXPECTED,
                          partial(_changed, of, entry, partial(_lock, seconds)))  # fmt: skip


def _lock(seconds: int, world: World) -> None:
    held: dict[str, tuple[str, int]] = world.services.locks.held
    owner, until = held[NAME]
    held[NAME] = owner, until + seconds


def ledger_times(of: Undisturbed) -> Iterator[Row]:
    """Entries of each kind, from before the execution, were written by another clock."""
    for prefix in (ledger_keys.RUN_ENTRIES, ledger_keys.TRIAL_ENTRIES, ledger_keys.FLAG_ENTRIES):
        for seconds in SKEWS:
            yield Row(f"{of.name}, ledger entries {prefix}", f"written {seconds:+} s from now",
                      "as without the fault, or refused",
                      partial(_changed, of, of.execution.entries[0],
                              partial(_entries, prefix, seconds)))  # fmt: skip


def _entries(prefix: str, seconds: int, world: World) -> None:
    items: dict[Any, Any] = world.services.ledger.raw.items
    for (name, key), written in list(items.items()):
        if key.startswith(prefix):
            items[name, key] = {**json.loads(json.dumps(written)), "at": written["at"] + seconds}


def _changed(of: Undisturbed, entry: Entry, change: Change) -> list[str]:
    execution = of.again(entry)
    change(execution.world)
    return ended(of, execution.run(entry))
