"""The ledger in records: the one place where entries are read and written as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.ledger import LedgerRecordT, read_as


class RawLedger(Protocol):
    """Append-only entries; one is written once under its sort key and never changed."""

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the entry, or return the one that is already there."""
        ...

    def entries(self, workload: str, prefix: str = "") -> Sequence[Mapping[str, Any]]:
        """A workload's entries in the order of their sort keys, those that begin with ``prefix``.

        Read consistently: what was written before the call is there.
        """
        ...


@dataclass(frozen=True)
class RecordLedger:
    """Ledger on raw entries."""

    raw: RawLedger

    def history(self, workload: str, prefix: str = "") -> WorkloadHistory:
        """What a workload's entries say, of those whose sort keys begin with ``prefix``."""
        return history(self.raw.entries(workload, prefix))

    def put_once(
        self, workload: str, record: LedgerRecordT, *, key: str | None = None
    ) -> LedgerRecordT:
        """Write the record, or return the one that is already there."""
        entry = self.raw.put_once(workload, key or record.key, record.to_entry())
        return read_as(type(record), entry)

    def append(self, workload: str, record: LedgerRecord) -> None:
        """Write the record; one that is already there stays, readable or not."""
        self.raw.put_once(workload, record.key, record.to_entry())
