"""A month's statement: what is kept of each workload's month, and its ledger where nothing is."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from compilegate.domain.fleet.fold import registered_of
from compilegate.domain.fleet.month import Month, history_since, month_of
from compilegate.domain.fleet.statement import Statement, check_month, of_owner
from compilegate.domain.naming import WORKLOADS_PREFIX
from compilegate.ports import Services
from compilegate.usecases.registered import AT_ONCE

logger = logging.getLogger("compilegate")


def statement(month: str, services: Services, *, owner: str | None = None) -> Statement:
    """The month of one owner's workloads, or of all.

    Raises InvalidInputError for a malformed month, one that has not begun, an unknown owner. A
    workload whose records cannot be read is named in the statement of every owner.
    """
    now = services.clock.now()
    check_month(month, now)
    kept = services.fleet.months(month)
    names = {*services.store.folders(WORKLOADS_PREFIX), *kept.damaged, *kept.newer}
    missing = sorted(names - {one.workload for one in kept.read})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        read = list(pool.map(lambda name: (name, _read(name, month, services)), missing))
    months = [*kept.read, *(one for _, one in read if one is not None)]
    return Statement(
        stage=services.settings.stage,
        month=month,
        owner=owner,
        read_at=now,
        months=months if owner is None else of_owner(months, owner),
        unread=[name for name, one in read if one is None],
        simulated=services.settings.simulated,
    )


def _read(workload: str, month: str, services: Services) -> Month | None:
    """The month by the workload's ledger; None where that cannot be read."""
    try:
        past = services.ledger.history(workload, since=history_since(month))
    except Exception:
        logger.exception("%s: its month cannot be read", workload)
        return None
    owner, now = registered_of(past).get("owner"), services.clock.now()
    return month_of(past, workload, month, owner=owner, now=now)
