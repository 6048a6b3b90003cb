"""Once a day: rows that lag behind their ledgers are folded anew, missing ones are built.

A row lags where records of the stream have got lost. The pass sees that by the number of entries
and the newest keys of what it reads; of some workloads it reads the whole ledger and compares.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable
from dataclasses import replace
from threading import Semaphore

from compilegate.domain import arithmetic
from compilegate.domain.fleet.fold import lags
from compilegate.domain.fleet.row import FOLD, Row
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.summaries import TimeWindow
from compilegate.ports import Services
from compilegate.usecases.fleet.project import fold, fold_workload, write_fold
from compilegate.usecases.metrics import measure

# Each row is compared with its whole ledger once in so many days.
COMPARED_DAYS = 90
# What was written since then the stream may still bring.
STREAM_SECONDS = 900
# For folding whole ledgers; what is left after it waits for the next pass.
BUDGET_SECONDS = 400
FOLDED_AT_ONCE = 4  # each takes the memory of a whole ledger
SOUND, BUILT, REPAIRED, NEWER, WAITING = "sound", "built", "repaired", "newer", "waiting"
logger = logging.getLogger("compilegate")


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
        is_lagging = row is None or lags(row, recent, lock, young)
        if row is not None and not is_lagging:
            is_covered = not lags(row, recent, lock)
            if not (is_covered and self._is_compared_today(workload)):
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
        is_sound = stored.item is not None and row == replace(
            stored.item, read_at=row.read_at, closed=row.closed
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


def measure_repairs(outcomes: Iterable[str], services: Services) -> dict[str, int]:
    """Write how many rows the pass built and repaired as metrics; returns all counts."""
    done = [*outcomes]
    counts = {one: done.count(one) for one in (BUILT, REPAIRED, NEWER, WAITING)}
    figures = {arithmetic.ROWS_BUILT: counts[BUILT], arithmetic.ROWS_REPAIRED: counts[REPAIRED]}
    measure(figures, "rows of the fleet after the daily pass", services)
    return {f"rows_{outcome}": number for outcome, number in counts.items()}
