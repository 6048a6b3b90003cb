"""A month's statement: what is kept of each workload, and the ledgers of those that have no row."""

from __future__ import annotations

import logging

from compilegate.domain.fleet.month import Month, MonthFigures, history_since, month_of
from compilegate.domain.optional import without_none
from compilegate.ports import Services
from compilegate.usecases.records import at_once, workload_names
from compilegate_statement.statement import Statement, check_month, of_owner

logger = logging.getLogger("compilegate")


def statement(month: str, services: Services, *, owner: str | None = None) -> Statement:
    """The month of one owner's workloads, or of all.

    Raises InvalidInputError for a malformed month, one that has not begun, an unknown owner. A
    workload whose records cannot be read is named in the statement of every owner.
    """
    now = services.clock.now()
    check_month(month, now)
    rows, stored = services.fleet.rows(), services.fleet.months(month)
    suspect = {*stored.damaged, *stored.newer, *(row.workload for row in rows.read if row.unread)}
    # Months are written before the row: where it has none, nothing of the ledger is in the month.
    kept = {
        row.workload: Month(row.workload, month, row.owner, row.read_at, MonthFigures())
        for row in rows.read
    }
    kept |= {one.workload: one for one in stored.read}
    names = {*workload_names(services.store), *rows.damaged, *rows.newer, *suspect}
    missing = sorted(name for name in names if name in suspect or name not in kept)
    read = at_once(lambda name: _read(name, month, services), missing)
    months = [one for name, one in kept.items() if name not in suspect]
    months += without_none(read)
    owners = [row.owner for row in rows.read]
    return Statement(
        stage=services.settings.stage,
        month=month,
        owner=owner,
        read_at=now,
        months=months if owner is None else of_owner(months, owner, owners),
        unread=sorted({*missing} - {one.workload for one in months}),
        simulated=services.settings.simulated,
    )


def _read(workload: str, month: str, services: Services) -> Month | None:
    """The month by the workload's ledger; None where that cannot be read or added up."""
    try:
        history = services.ledger.history(workload, since=history_since(month))
        return month_of(history, workload, month, now=services.clock.now())
    except Exception:
        logger.exception("%s: its month cannot be read", workload)
        return None
