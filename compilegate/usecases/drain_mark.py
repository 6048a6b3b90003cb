"""The mark in the ledger that says whether a deployment is drained, and starts nothing."""

from __future__ import annotations

from collections.abc import Iterable

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import DrainedError
from compilegate.domain.records.ledger import DamagedRecord, DrainMark, Record
from compilegate.domain.utc import minute
from compilegate.ports import Ledger, Services

NEVER = DrainMark(version=0, drained=False, at=0, by="")


def drain_mark(ledger: Ledger) -> DrainMark:
    """The mark that holds, ``NEVER`` for a deployment that was never drained."""
    return latest_mark(ledger.history(ledger_keys.DEPLOYMENT, ledger_keys.DRAIN_ENTRIES).records)


def latest_mark(records: Iterable[Record]) -> DrainMark:
    """The newest mark. Raises UnreadableRecordError where one is damaged: it may hold."""
    marks = [NEVER]
    for record in records:
        if isinstance(record, DamagedRecord) and record.kind == DrainMark.kind:
            raise record.error
        if isinstance(record, DrainMark):
            marks.append(record)
    return max(marks, key=lambda mark: mark.version)


def refuse_if_drained(services: Services) -> None:
    """Raises DrainedError while the deployment may not start work."""
    mark = drain_mark(services.ledger)
    if mark.drained:
        raise DrainedError(
            f"{naming.stack_name(services.settings.stage)} has been drained since "
            f"{minute(mark.at)} by {mark.by} and starts no new work",
            fix="run `compilegate drain --undo`",
        )


def put_mark(
    services: Services,
    before: DrainMark,
    *,
    drained: bool,
    by: str,
    schedules: tuple[str, ...] = (),
) -> DrainMark:
    """The next mark; one that was written meanwhile comes before it."""
    while True:
        mark = DrainMark(before.version + 1, drained, services.clock.now(), by, schedules)
        before = services.ledger.put_once(ledger_keys.DEPLOYMENT, mark)
        if before == mark:
            return mark
