"""Every workload's row, and what there is no row of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from compilegate.domain import naming
from compilegate.domain.fleet.row import Row
from compilegate.ports import Services


@dataclass(frozen=True)
class Fleet:
    """The rows in order of the workloads' names.

    ``building`` are workloads whose row is not there yet, ``unread`` those whose row cannot be
    read: it is damaged, or of a newer release.
    """

    rows: tuple[Row, ...]
    building: tuple[str, ...]
    unread: tuple[str, ...]


def read_fleet(services: Services) -> Fleet:
    """The fleet as its rows say; the names of all workloads are listed meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        listed = pool.submit(lambda: set(services.store.folders(naming.WORKLOADS_PREFIX)))
        items = services.fleet.rows()
        names = listed.result()
    unread = (*items.damaged, *items.newer)
    known = {*unread, *(row.workload for row in items.read)}
    return Fleet(items.read, tuple(sorted(names - known)), unread)
