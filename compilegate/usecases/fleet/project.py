"""Keeps a row and the months of each workload as its ledger changes: the function Project.

The table's stream says which workload has changed; what became of it is read from its ledger. So
records that come twice, in another order or not at all cannot damage a row: it is what the ledger
says, or an earlier state of it until the next record or the daily pass (repair.py).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from compilegate.domain import codec
from compilegate.domain.errors import CompilegateError
from compilegate.domain.fleet.fold import base_of, read_since, row_of, unreadable
from compilegate.domain.fleet.month import Month, months_of, registered
from compilegate.domain.fleet.row import Row
from compilegate.domain.ledger_keys import DEPLOYMENT
from compilegate.domain.outside import BROKEN
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services, Stored
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
        return unreadable(base if before is None else before, now), []
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
        same = kept is not None and month == replace(kept, read_at=month.read_at)
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
