"""The fold of a row: from the row before it is what the whole ledger gives."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.flag import Flag
from compilegate.domain.fleet.fold import base_of, read_since, row_of
from compilegate.domain.fleet.month import months_of
from compilegate.domain.fleet.row import Row
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import Review, SpeedSum
from compilegate.ports import Ledger
from tests.domain.fleet.ledgers import BEGIN, KINDS, ledgers
from tests.domain.workload_builder import SOUND
from tests.fakes import MemoryLedger

Written = list[tuple[int, list[LedgerRecord]]]


def fold(base: Row, past: WorkloadHistory, now: int, lease: str | None = None) -> Row:
    after = None if base.closed is None else base.closed.through
    months = months_of(past, "w", owner=None, now=now, after=after)
    return row_of(base, past, months, now=now, job=SOUND, lease=lease)


@given(ledgers([*KINDS, "damaged"]), st.randoms(), st.data())
def test_a_fold_from_a_row_before_is_that_of_the_whole_ledger(
    written: Written, chance: random.Random, data: st.DataObject
) -> None:
    """Whatever changes no fold was made of, whatever order and how often entries are read in."""
    raw, row = MemoryLedger(), None
    ledger, changed = Ledger(raw), []
    for at, records in written:
        for record in records:
            ledger.append("w", record)
        changed += [record.key for record in records]
        if data.draw(st.booleans()) or at == written[-1][0]:
            base = base_of("w", row, changed)
            row = fold(base, ledger.history("w", since=read_since(base)), at)
            changed = []

    entries = [*raw.entries("w"), *raw.entries("w")[:5]]
    chance.shuffle(entries)

    assert fold(Row("w"), history(entries), written[-1][0]) == row


def test_a_lost_speed_up_needs_a_person_while_the_promotion_is_permanent() -> None:
    on, again = (
        FlagVersion(n, BEGIN + n, f"c{n}", "train", state, "why", Flag(True, state, "c").to_json())
        for n, state in ((1, "permanent"), (2, "stale"))
    )
    review = Review(BEGIN + 2, "r1", "t", "c", speed=SpeedSum(9.0, "r1", BEGIN + 1))
    entries = [one.to_entry() for one in (on, review, again)]

    codes = [
        [need.code for need in fold(Row("w"), history(entries[:length]), BEGIN + 9).due(BEGIN + 9)]
        for length in (1, 2, 3)
    ]
    assert [[], ["slower_now"], ["stale"]] == codes
