"""Every workload's row, and what there is no row of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from compilegate.domain.fleet.row import Row
from compilegate.ports import Services
from compilegate.usecases.fleet.project import fold
from compilegate.usecases.records import at_once, workload_names

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
