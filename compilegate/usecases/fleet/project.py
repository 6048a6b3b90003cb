"""Keeps a row and the months of each workload as its ledger changes: the function Project.

The table's stream says which workload has changed; what became of it is read from its ledger. So
records that come twice, in another order or not at all cannot damage a row: it is what the ledger
says, or an earlier state of it until the next record or the daily pass (below).
"""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from threading import Semaphore
from typing import Any

from compilegate.domain import arithmetic, codec
from compilegate.domain.errors import CompilegateError
from compilegate.domain.fleet.fold import base_of, lags, read_since, row_of, unreadable
from compilegate.domain.fleet.month import Month, months_of, registered
from compilegate.domain.fleet.row import FOLD, Row
from compilegate.domain.ledger_keys import DEPLOYMENT
from compilegate.domain.optional import map_optional
from compilegate.domain.outside import BROKEN
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.summaries import TimeWindow
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services, Stored
from compilegate.usecases.metrics import measure
from compilegate.usecases.records import at_once, spec_at, workload_names

# Attempts at a row that others write at the same time: another shard, the daily pass.
ATTEMPTS = 5
logger = logging.getLogger("compilegate")


class ContestedRowError(CompilegateError):
    """Others wrote the row each time that it was to be written; the next attempt may succeed."""


def project(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Fold the workloads that a batch of the stream names; each once, whatever changed of it.

    Returns the sequence numbers from which on the stream sends its records again.
    """
    changes: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in event["Records"]:
        changed = record["dynamodb"]
        changes[changed["Keys"]["pk"]["S"].partition("#")[2]].append(changed)
    changes.pop(DEPLOYMENT, None)
    failed = []
    for workload, changed in changes.items():
        try:
            fold_workload(workload, services, [one["Keys"]["sk"]["S"] for one in changed])
        except Exception:
            logger.exception("%s: its row was not written", workload)
            failed.append({"itemIdentifier": changed[0]["SequenceNumber"]})
    return {"batchItemFailures": failed}


def fold_workload(workload: str, services: Services, changed: Iterable[str] = ()) -> None:
    """Write the months and the row of a workload whose entries of these sort keys have changed.

    A row of a newer release is left alone. Raises ContestedRowError.
    """
    for _ in range(ATTEMPTS):
        stored = services.fleet.row(workload)
        if stored.newer:
            logger.warning("%s: its row is of a newer release", workload)
            return
        base = base_of(workload, stored.item, changed, now=services.clock.now())
        row, months = fold(base, services, stored.item)
        if write_fold(row, months, stored, services):
            return
    raise ContestedRowError(f"others wrote the row of {workload} {ATTEMPTS} times meanwhile")


def fold(base: Row, services: Services, before: Row | None = None) -> tuple[Row, list[Month]]:
    """The row and the months by the ledger, read from where ``base`` ends.

    Where the ledger cannot be read, or its figures cannot be computed or kept, the row ``before``
    stays but for a need of a person.
    """
    workload, now = base.workload, services.clock.now()
    try:
        history = services.ledger.history(workload, since=read_since(base))
        months = months_of(history, workload, now=now, after=base.closed.through)
        job = _job(workload, registered(history, "spec_key"), services)
        lock = next((one.owner for one in services.locks.locks_of([workload])), None)
        row = row_of(base, history, months, now=now, job=job, lock=lock)
        for item in (row, *months):
            codec.read(type(item), codec.write(item))
    except BROKEN:
        logger.exception("%s: no row can be made of its ledger", workload)
        return unreadable(before or base, now), []
    return row, months


def _job(workload: str, spec_key: str | None, services: Services) -> Workload | None:
    """What is registered; of one that cannot be read the row says no more than of none.

    Sent again, its records would keep back those of all other workloads for a day.
    """
    try:
        return spec_at(services.store, spec_key, of=workload).workload if spec_key else None
    except Exception:
        logger.exception("%s: what is registered cannot be read", workload)
        return None


def write_fold(row: Row, months: Iterable[Month], over: Stored[Row], services: Services) -> bool:
    """Write months and row; returns whether the row was still the one that was read.

    The months come first, and where the row was not, they have to be folded again: others may have
    written them before. So those of the row that is written last are the last.
    """
    for month in months:
        keep_month(month, services)
    return services.fleet.put(row, over.version)


def keep_month(month: Month, services: Services) -> None:
    """Write a month where it changed, and in any case once after its close."""
    for _ in range(ATTEMPTS):
        stored = services.fleet.month(month.month, month.workload)
        kept = stored.item
        same = month == map_optional(kept, lambda one: replace(one, read_at=month.read_at))
        is_open = month.read_at < month.closes_at
        if stored.newer or (same and is_open) or not month.replaces(kept):
            return
        if services.fleet.put(month, stored.version):
            return
    raise ContestedRowError(f"others wrote {month.month} of {month.workload} meanwhile")


# Every workload's row, and what there is no row of.

# Rows that are made here of the ledgers, where none can be read. A ledger takes about 50 ms.
MOST_FOLDED = 100


@dataclass(frozen=True)
class Fleet:
    """The rows in order of the workloads' names; what was only uploaded has none.

    ``building`` are workloads whose row is not there yet, ``unread`` those whose row cannot be
    read: it is damaged, or of a newer release.
    """

    rows: tuple[Row, ...] = ()
    building: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Every workload's name, in order."""
        return sorted([*(row.workload for row in self.rows), *self.building, *self.unread])


def read_fleet(services: Services) -> Fleet:
    """The fleet as its rows say; a few that are missing or damaged are folded from the ledger."""
    with ThreadPoolExecutor() as pool:
        listing = pool.submit(workload_names, services.store)
        items = services.fleet.rows()
        names = listing.result()
    stored = {*(row.workload for row in items.read), *items.damaged, *items.newer}
    missing = [name for name in names if name not in stored]
    lacking = [*items.damaged, *missing]
    folded = at_once(lambda name: fold(Row(name), services)[0], lacking[:MOST_FOLDED])
    left = {*lacking[MOST_FOLDED:]}
    rows = (row for row in chain(items.read, folded) if row.entries or row.upto or row.unread)
    return Fleet(
        rows=tuple(sorted(rows, key=lambda row: row.workload)),
        building=tuple(name for name in missing if name in left),
        unread=(*(name for name in items.damaged if name in left), *items.newer),
    )


# Once a day: rows that lag behind their ledgers are folded anew, missing ones are built.
#
# A row lags where records of the stream have got lost. The pass sees that by the number of entries
# and the newest keys of what it reads; of some workloads it reads the whole ledger and compares.

# Each row is compared with its whole ledger once in so many days.
COMPARED_DAYS = 90
# What was written since then the stream may still bring.
STREAM_SECONDS = 900
# For folding whole ledgers; what is left after it waits for the next pass.
BUDGET_SECONDS = 400
FOLDED_AT_ONCE = 4  # each takes the memory of a whole ledger
SOUND, BUILT, REPAIRED, NEWER, WAITING = "sound", "built", "repaired", "newer", "waiting"


class RowRepair:
    """One pass; ``check`` may be called from several threads, once for each workload."""

    def __init__(self, services: Services) -> None:
        rows = services.fleet.rows()
        self._rows = {row.workload: row for row in rows.read}
        self._newer = frozenset(rows.newer)
        self._services = services
        self._now = services.clock.now()
        self._folding = Semaphore(FOLDED_AT_ONCE)

    def row(self, workload: str) -> Row | None:
        """The row as it was at the beginning of the pass."""
        return self._rows.get(workload)

    def check(self, workload: str, recent: WorkloadHistory, lock: str | None) -> str:
        """Fold the row anew where it lags; says what was done.

        ``recent`` is what was read of the ledger: any part of it; ``lock`` the execution that
        holds the workload.
        """
        if workload in self._newer:
            return NEWER
        row, now = self._rows.get(workload), self._services.clock.now()
        young = TimeWindow(now - STREAM_SECONDS + 1, now + 1)
        is_lagging = True
        if row is not None:
            is_lagging = lags(row, recent, lock, young)
            is_compared = not lags(row, recent, lock) and self._is_compared_today(workload)
            if not (is_lagging or is_compared):
                return SOUND
        if now > self._now + BUDGET_SECONDS:
            return WAITING if is_lagging else SOUND
        return self._fold(workload)

    def _is_compared_today(self, workload: str) -> bool:
        shard = zlib.crc32(workload.encode()) % COMPARED_DAYS
        return shard == self._now // DAY_SECONDS % COMPARED_DAYS

    def _fold(self, workload: str) -> str:
        """From the whole ledger; the row may have been written since all rows were read."""
        stored = self._services.fleet.row(workload)
        with self._folding:
            row, months = fold(Row(workload), self._services, stored.item)
        if stored.newer:
            return SOUND
        # Whether both say the same, whenever they were folded.
        is_sound = row == map_optional(
            stored.item, lambda kept: replace(kept, read_at=row.read_at, closed=row.closed)
        )
        if is_sound:
            # Of a workload in which nothing happens the stream says nothing: its months begin and
            # are closed here.
            since_close = COMPARED_DAYS * DAY_SECONDS
            months = [one for one in months if row.read_at < one.closes_at + since_close]
        if not write_fold(row, months, stored, self._services):
            fold_workload(workload, self._services)
            return SOUND
        if is_sound:
            return SOUND
        is_new = stored.version == "" or (stored.item is not None and stored.item.fold < FOLD)
        if not is_new:
            logger.error("%s: its row was not what its ledger says; it was folded anew", workload)
        return BUILT if is_new else REPAIRED


def measure_repairs(outcomes: Iterable[str | None], services: Services) -> dict[str, int]:
    """Write how many rows the pass built and repaired as metrics; returns all counts."""
    done = [*outcomes]
    counts = {one: done.count(one) for one in (BUILT, REPAIRED, NEWER, WAITING)}
    figures = {arithmetic.ROWS_BUILT: counts[BUILT], arithmetic.ROWS_REPAIRED: counts[REPAIRED]}
    measure(figures, "rows of the fleet after the daily pass", services)
    return {f"rows_{outcome}": number for outcome, number in counts.items()}
