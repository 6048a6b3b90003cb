"""The fold of a row: from the row before it is what the whole ledger gives."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import codec
from compilegate.domain.flag import Flag
from compilegate.domain.fleet.fold import NEVER, base_of, lags, read_since, row_of, unreadable
from compilegate.domain.fleet.month import Amount, months_of, window_of
from compilegate.domain.fleet.row import FOLD, Closed, DayOfRuns, LastRun, Need, Row, RowFlag
from compilegate.domain.naming import trial_id
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.summaries import TimeWindow
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import TEAM, RegistrationChange, Review, SpeedSum
from compilegate.domain.records.trials import ApprovalRequested, TrialDecided, TrialFailed
from compilegate.domain.spreads import Measured
from compilegate.ports import Ledger
from tests.domain.fleet.ledgers import BEGIN, DAY, EXECUTION, KINDS, Damaged, ledgers
from tests.domain.production.run_builder import production_run
from tests.domain.production.test_history import LEDGERS
from tests.domain.workload_builder import SOUND
from tests.fakes import MemoryLedger


def fold(base: Row, past: WorkloadHistory, now: int, lock: str | None = None) -> Row:
    months = months_of(past, "w", now=now, after=base.closed.through)
    return row_of(base, past, months, now=now, job=SOUND, lock=lock)


@given(ledgers([*KINDS, "damaged"], apart=DAY), st.randoms(), st.data())
def test_a_fold_from_a_row_before_is_that_of_the_whole_ledger(written, chance, data):
    """Whatever changes no fold was made of, whatever order and how often entries are read in."""
    raw, row = MemoryLedger(), None
    ledger, changed = Ledger(raw), []
    for at, records in written:
        for record in records:
            ledger.append("w", record)
        changed += [record.key for record in records]
        if data.draw(st.booleans()) or at == written[-1][0]:
            base = base_of("w", row, changed, now=at)
            row = fold(base, ledger.history("w", since=read_since(base)), at)
            changed = []

    entries = [*raw.entries("w"), *raw.entries("w")[:5]]
    chance.shuffle(entries)

    assert fold(Row("w"), history(entries), written[-1][0]) == row


def test_a_lost_speed_up_needs_a_person_while_the_promotion_is_permanent():
    on, again = (
        FlagVersion(n, BEGIN + n, f"c{n}", "train", state, "why", Flag(True, state, "c").to_json())
        for n, state in ((1, "permanent"), (2, "stale"))
    )
    review = Review(BEGIN + 1, "r1", "t", "c", speed=SpeedSum(9.0, "r1", BEGIN + 1))
    recovered, lost = Review(BEGIN + 2, "r2", "t", "c"), replace(review, at=BEGIN + 3, run="r3")
    entries = [one.to_entry() for one in (on, review, recovered, lost, again)]

    codes = [
        [need.code for need in fold(Row("w"), history(entries[:length]), BEGIN + 9).due(BEGIN + 9)]
        for length in (1, 2, 3, 4, 5)
    ]
    assert [[], ["slower_now"], [], ["slower_now"], ["stale"]] == codes


def stale(run: str) -> FlagVersion:
    to = Flag(False, "stale", "compile").to_json()
    return FlagVersion(2, BEGIN + 40 * DAY, "c2", "train", "stale", "why", to, details={"run": run})


RUNS = [
    production_run(1, "baseline", at=BEGIN + DAY + 30_000),
    production_run(33, "baseline", counts=False),
    production_run(33, "compile", job="j2"),
    production_run(34, "baseline", finished=False),
    production_run(39, "p4d", launched_by=TEAM),
    production_run(40, "p4d", finished=False, usd=7.0, launched_by=TEAM),
]
RECORDS: list[LedgerRecord] = [
    RegistrationChange(1, active=False, at=5, document={"owner": "before"}),
    RegistrationChange(2, active=True, at=6, document={"owner": "nlp", "spec_key": "s"}),
    FlagVersion(
        1, BEGIN, "c1", "evaluate", "enable", "why", Flag(True, "permanent", "compile").to_json()
    ),
    stale(RUNS[-1].run),
    Review(BEGIN + 20 * DAY, RUNS[0].run, "t", "compile", differs=("before",)),
    Review(BEGIN + 40 * DAY, RUNS[-1].run, "t", "compile", differs=("image", "source")),
    TrialDecided(BEGIN, "t1", "promote", spent_usd=2.5),
    TrialFailed(BEGIN, "t2", error="States.Timeout"),
    *RUNS,
]


def test_every_field_of_a_row():
    """The week of the last run alone is counted; a baseline that does not count is none."""
    past = history(record.to_entry() for record in RECORDS)
    now = BEGIN + 41 * DAY
    last = int(RUNS[-1].ended_at)

    row = fold(Row("w"), past, now)

    assert ("nlp", True, True) == (row.owner, row.registered, row.active)
    assert RowFlag("stale", False, "compile", BEGIN + 40 * DAY, 2, None) == row.flag
    assert ("ml.g5.48xlarge", 1, "pytorch 2.13.0", "transformer", 3) == (
        row.instance, row.instances, row.image, row.family, row.runs_per_week,
    )  # fmt: skip
    assert LastRun(last, "p4d", ok=False) == row.last_run
    day = last // DAY
    assert (
        DayOfRuns(day - 6, 1, 1), DayOfRuns(day - 1, 1, 0), DayOfRuns(day, 1, 1)
    ) == row.days  # fmt: skip
    assert int(RUNS[0].ended_at) == row.baseline_at
    assert Amount(1, 2_500_000, 1) == row.trials
    assert ("image", "source") == row.stale
    assert -7_000_000 == row.saved.micro_usd
    assert {"registered": 2, "flag": 2, "trial": 2} == row.entries
    assert {"run": RUNS[-1].key, "review": f"review#{RUNS[-1].run}"} == row.upto
    assert (1, now, FOLD, 0) == (row.schema, row.read_at, row.fold, row.unread)


def test_a_ledger_is_read_as_a_whole_where_the_row_before_does_not_say_enough():
    now = BEGIN + 400 * DAY
    row = fold(Row("w"), history(record.to_entry() for record in RECORDS), now)
    old, new = trial_id(1000 * BEGIN), trial_id(1000 * (BEGIN + 399 * DAY))

    def base(of: Row | None, *changed: str, now: int = now) -> Row:
        return base_of("w", of, changed, now=now)

    first, none_closed = trial_id(round(1000 * read_since(row))), replace(row, closed=Closed())
    assert row == base(row) == base(row, f"run#{new}#j", f"run#{first}#j", "flag#1", "lock")
    assert none_closed == base(none_closed, f"run#{old}#j")
    assert Row("w") == base(row, f"run#{new}#j", f"review#{old}")
    assert Row("w") == base(None) == base(replace(row, fold=FOLD - 1))
    assert Row("w") == base(replace(row, unread=1)) == base(row, now=now - 1)
    assert -math.inf == read_since(Row("w"))


def test_what_a_fold_reads_no_more_is_as_the_row_before_has_it():
    """Of two runs that ended on one day the first began just before what is read."""
    first, other = (production_run(day, "compile", ended_at=BEGIN + 14 * DAY) for day in (11, 13))
    baseline = production_run(5, "baseline")
    flag, *runs = (one.to_entry() for one in (RECORDS[2], baseline, first, other))
    base = fold(Row("w"), history([flag, *runs]), BEGIN + 130 * DAY)
    now = BEGIN + 131 * DAY

    assert first.started_at < read_since(base) < other.started_at
    assert first.ended_at == base.known_flag.followed_at
    assert baseline.ended_at == base.baseline_at
    for again in (runs[2:], []):
        assert replace(base, read_at=now) == fold(base, history([flag, *again]), now)


@pytest.mark.parametrize(
    ("state", "since", "stale", "slower_at", "followed_at"),
    [
        ("stale", BEGIN, ("image",), None, BEGIN + 5),
        ("stale", BEGIN - 1, (), None, None),
        ("permanent", BEGIN, (), BEGIN + 7, BEGIN + 5),
        ("permanent", BEGIN - 1, (), None, None),
    ],
)
def test_what_the_row_before_says_of_the_flag_holds_as_long_as_its_state(
    state, since, stale, slower_at, followed_at
):
    before = Row(
        "w", flag=RowFlag(state, True, "compile", since, 1, BEGIN + 5), stale=("image",),
        slower_at=BEGIN + 7,
    )  # fmt: skip
    to = Flag(True, state, "compile").to_json()
    records = (
        FlagVersion(1, BEGIN, "c1", "train", "change", "why", to),
        Review(BEGIN - 1, "r1", "t", "compile", speed=SpeedSum(9.0, "r1", BEGIN - 2)),
    )
    row = fold(before, history(one.to_entry() for one in records), BEGIN + 9)

    assert (stale, slower_at) == (row.stale, row.slower_at)
    assert followed_at == row.known_flag.followed_at


def test_of_runs_that_ended_at_once_the_last_is_the_same_in_any_order():
    runs = [
        production_run(1, arm, job=arm + str(ok), ended_at=BEGIN, finished=ok)
        for arm, ok in (("b", False), ("b", True), ("a", True))
    ]

    for ordered in (runs, runs[::-1]):
        row = fold(Row("w"), history(one.to_entry() for one in ordered), BEGIN + 9)
        assert LastRun(BEGIN, "b", True) == row.last_run


def test_a_month_is_closed_two_weeks_after_its_end():
    first = int(window_of("2026-10").since)
    closed = [
        fold(Row("w"), history([]), first + days * DAY).closed.through for days in (0, 13, 14)
    ]

    assert ["2026-08", "2026-08", "2026-09"] == closed


def test_the_spreads_of_the_latest_three_trials_that_measured_any_are_kept():
    measured = [Measured(f"ml.g{number}.xlarge") for number in range(5)]
    decided = [
        TrialDecided(BEGIN + number, f"t{number}", "promote", spreads=one)
        for number, one in enumerate([*measured, None])
    ]

    row = fold(Row("w"), history(one.to_entry() for one in decided), BEGIN + 9)
    assert tuple(measured[2:]) == row.spreads


def test_a_ledger_that_cannot_be_read_needs_a_person_from_then_on():
    rest = (Need("stale", 7), Need("of_a_later_release", 9))
    row = Row("w", needs=(Need("approve", 60), *rest))
    once = unreadable(row, 50)

    needs = (Need("approve", 60), Need("unreadable", 50), *rest)
    assert replace(row, unread=1, needs=needs, read_at=50) == once
    assert replace(once, read_at=90) == unreadable(once, 90)
    assert 3 == unreadable(replace(row, unread=3), 50).unread


def test_a_row_lags_where_it_does_not_cover_what_was_read():
    entries = [record.to_entry() for record in RECORDS]
    row = fold(Row("w"), history(entries), BEGIN + 41 * DAY, lock=EXECUTION.format("t1"))

    def lagging(
        *more: LedgerRecord, lock: str = "t1", of: Row = row, young: TimeWindow = NEVER
    ) -> bool:
        recent = history([*entries[-9:], *(one.to_entry() for one in more)])
        return lags(of, recent, EXECUTION.format(lock), young)

    ended = replace(RUNS[0], job="j")
    # Of the week of the last run alone, counted on that day or not.
    assert [True, False, True] == [
        lagging(replace(ended, ended_at=RUNS[-1].ended_at - days * DAY)) for days in (6, 7, 3)
    ]
    late, decided = BEGIN + 50 * DAY, TrialDecided(BEGIN + 50 * DAY, "t2", "stay_off")
    newer, young = production_run(50, at=late), TimeWindow(late, late + 1)
    assert [True, False, True, False, True, False] == [
        lagging(newer),
        lagging(newer, young=young),
        lagging(newer, lock="t2", young=young),
        lagging(newer, decided, lock="t2", young=young),
        lagging(ApprovalRequested(1, 500, "t1")),
        lags(fold(Row("w"), history([]), BEGIN), history([]), None),
    ]
    assert [False, True, False, True, True, True, True, True, False] == [
        lagging(),
        lagging(replace(ended, ended_at=RUNS[-1].ended_at)),
        lagging(ended),
        lagging(TrialDecided(1, "t1", "stay_off"), TrialFailed(1, "t1", error="ABORTED")),
        lagging(lock="t2"),
        lags(row, history(entries), None),
        lagging(Damaged(BEGIN)),
        lagging(of=replace(row, fold=FOLD - 1)),
        lagging(Damaged(BEGIN), of=replace(row, unread=1)),
    ]


# The fold's number, and the digest of what it makes of the recorded ledgers.
ROWS_OF_FOLD = (1, "e5d05557aa1f883c")


def test_the_same_ledgers_give_the_same_rows_unless_the_fold_has_its_next_number():
    """Rows of an older fold are folded anew; of the same they would differ, and count as damaged.

    Where this fails, raise FOLD, unless no release had it yet, and write the new digest here.
    """
    rows = [
        codec.write(fold(Row("w"), history(entries.values()), BEGIN + 30 * DAY))
        for _, entries in sorted(LEDGERS.items())
    ]
    text = json.dumps(rows, sort_keys=True)

    assert ROWS_OF_FOLD == (FOLD, hashlib.sha256(text.encode()).hexdigest()[:16])
