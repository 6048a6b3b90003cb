"""A workload's month: each entry in one month, in whole micro-dollars; what is unknown counted."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.flag import Flag
from compilegate.domain.fleet import month as months
from compilegate.domain.fleet.month import Amount, Estimate, Month, MonthFigures
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.savings import saving_of
from compilegate.domain.production.summaries import TimeWindow
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import ProductionRun, RegistrationChange
from compilegate.domain.records.trials import TrialDecided, TrialFailed
from compilegate.ports import Ledger
from tests.domain.fleet.ledgers import BEGIN, KINDS, ledgers
from tests.domain.production.run_builder import production_run
from tests.fakes import MemoryLedger

NOVEMBER = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
DECEMBER = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
DAY = 86_400


def past(*records) -> WorkloadHistory:
    return history([record.to_entry() for record in records])


def figures(*records, month: str = "2026-11") -> MonthFigures:
    return months.month_of(past(*records), "w", month, now=DECEMBER).figures


def decided(trial: str, at: int, usd: float | None, verdict: str = "promote") -> TrialDecided:
    return TrialDecided(at, trial, verdict, spent_usd=usd)


def failed(trial: str, at: int, usd: float | None, error: str = "States.Timeout") -> TrialFailed:
    return TrialFailed(at, trial, error=error, spent_usd=usd)


def test_trials_count_by_how_they_ended_and_those_of_unknown_cost_are_counted():
    found = figures(
        decided("a", NOVEMBER, 12.5),
        decided("b", DECEMBER - 1, 0.000_001_4, "stay_off"),
        decided("c", NOVEMBER, None, "inconclusive"),
        decided("d", NOVEMBER - 1, 1.0),
        decided("e", DECEMBER, 2.0),
        failed("f", NOVEMBER, 4.0),
        failed("g", NOVEMBER, None),
        failed("h", NOVEMBER, 8.0, "ABORTED"),
        failed("i", NOVEMBER, 16.0, "Drained"),
        failed("j", DECEMBER, 32.0),
    )

    assert Amount(2, 12_500_001, 1) == found.decided
    assert Amount(1, 4_000_000, 1) == found.failed
    assert Amount(2, 24_000_000, 0) == found.stopped
    assert Amount(5, 40_500_001, 2) == found.spent
    assert Estimate(5, -40_500_001, unknown=2) == found.net
    assert 0 == found.unread


def flag(version: int, at: int, **to: Any) -> FlagVersion:
    value = Flag(**{"enabled": True, "state": "permanent", "candidate": "compile", **to}).to_json()
    return FlagVersion(version=version, at=at, change_id=f"c{version}", by="evaluate",
                       action="enable", reason="r", value=value)  # fmt: skip


def test_the_holdback_costs_what_baseline_runs_would_have_saved_while_a_candidate_was_on():
    def run(day: int, arm: str = "baseline", **more: Any) -> ProductionRun:
        usd, why = (10.0, "holdback") if arm == "baseline" else (8.0, "flag")
        started = NOVEMBER + day * DAY
        return production_run(day, arm, **{"started_at": started, "usd": usd, "why": why, **more})

    found = figures(
        flag(1, NOVEMBER - 3 * DAY),
        flag(2, NOVEMBER - DAY // 2, enabled=False, state="off"),
        flag(3, NOVEMBER + 3 * DAY),
        flag(4, NOVEMBER + 20 * DAY, state="stale"),
        flag(5, NOVEMBER + 22 * DAY, enabled=False, state="off"),
        flag(6, NOVEMBER + 24 * DAY, candidate=None),
        *(run(day) for day in (-1, 0, 1, 21, 23, 25)),
        # Held back, but for one without a price.
        *(run(day, why=why) for day, why in ((3, "holdback"), (6, "refresh"), (9, "team"))),
        *(run(day, "compile") for day in (4, 5, 7, 8, 10)),
        run(11, "compile", why="team"),
        run(12, finished=False),
        run(13, usd=None, why="confirm"),
        # No run for a comparison.
        *(run(day, why=why) for day, why in enumerate(("rerun", "unfit", "canary"), 14)),
        run(40),
    )

    assert (3, 6_000_000, 2) == (
        found.holdback.runs, found.holdback.micro_usd, found.holdback.unknown,
    )  # fmt: skip
    assert (6, 12_000_000, 0) == (found.saved.runs, found.saved.micro_usd, found.saved.unknown)


def test_sums_of_estimates_add_their_variances():
    found = Estimate.total([Estimate(3, 100, 30, 1), Estimate(4, 10, 40, 2)])

    assert Estimate(7, 110, 50, 3) == found
    assert (110 - 82, 110 + 82) == found.interval_micro_usd


def test_a_total_adds_each_line_to_its_own():
    one = MonthFigures(
        Amount(1, 2, 3), Amount(4, 5, 6), Amount(7, 8, 9), Amount(10, 11, 12),
        Estimate(13, 14, 3, 15), Estimate(17, 18, 4, 19), 20,
    )  # fmt: skip
    twice = MonthFigures(
        Amount(2, 4, 6), Amount(8, 10, 12), Amount(14, 16, 18), Amount(20, 22, 24),
        Estimate(26, 28, 4, 30), Estimate(34, 36, 5, 38), 40,
    )  # fmt: skip

    assert twice == MonthFigures.total([one, one])
    assert MonthFigures() == MonthFigures.total([])


def test_a_trial_has_spent_its_money_once_and_an_ineligible_one_nothing():
    again = figures(decided("a", NOVEMBER - 1, 12.5), failed("a", NOVEMBER, 12.5))
    ineligible = (decided(f"t{usd}", NOVEMBER, usd, "ineligible") for usd in (None, 3.0))

    assert Amount() == again.spent
    assert Amount(2, 3_000_000, 0) == figures(*ineligible).decided


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_months_are_those_of_utc_wherever_it_is_read(zone, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", zone)
        time.tzset()
        at = months.month_at(NOVEMBER), months.window_of("2026-11")
    time.tzset()

    assert ("2026-11", TimeWindow(NOVEMBER, DECEMBER)) == at


def test_entries_that_cannot_be_read_are_counted_in_each_month_that_they_may_be_of():
    entries = [{"kind": "run", "at": at, "run": at} for at in (NOVEMBER, DECEMBER, "?", "-")]
    entries.append({"kind": "of_a_later_release", "at": NOVEMBER})
    found = months.month_of(history(entries), "w", "2026-11", now=DECEMBER).figures

    assert MonthFigures(unread=4) == found
    assert Estimate(unknown=4) == found.net


def test_a_sum_says_something_where_any_part_of_it_does_or_there_is_none():
    of = ((0, 0), (1, 2), (0, 2))
    for known in (
        [Amount(entries, unknown=unknown).is_known for entries, unknown in of],
        [Estimate(runs, unknown=unknown).is_known for runs, unknown in of],
    ):
        assert [True, True, False] == known


def test_a_whole_history_gives_its_empty_months_too_and_a_part_those_after_one():
    def names(of: WorkloadHistory, after: str = "") -> list[str]:
        return [one.month for one in months.months_of(of, "w", now=DECEMBER, after=after)]

    ledger = past(decided("a", NOVEMBER - 40 * DAY, 1.0))
    assert ["2026-09", "2026-10", "2026-11", "2026-12"] == names(ledger)
    assert names(ledger) == names(past(failed("a", NOVEMBER - 40 * DAY, None)))
    assert ["2026-11", "2026-12"] == names(ledger, "2026-10") == names(past())


def test_a_run_counts_when_it_was_recorded_else_when_it_ended():
    found = figures(
        production_run(1, started_at=NOVEMBER - 9 * DAY, at=NOVEMBER, usd=1.0),
        production_run(2, started_at=NOVEMBER + DAY, usd=None),
        production_run(3, started_at=NOVEMBER + DAY, at=DECEMBER, usd=4.0),
    )

    assert Amount(1, 1_000_000, 1) == found.production


def test_what_was_saved_has_its_standard_error_and_what_is_unknown():
    runs = [
        production_run(day, arm, started_at=NOVEMBER + day * DAY, usd=usd + day % 3 / 10)
        for day, (arm, usd) in enumerate([("baseline", 10.0), ("compile", 8.0)] * 8)
    ]
    runs.append(production_run(20, started_at=NOVEMBER + 20 * DAY, usd=None))
    saved = saving_of(runs, NOVEMBER, DECEMBER)

    assert 0 < saved.se_micro_usd < saved.micro_usd
    assert Estimate(8, saved.micro_usd, saved.se_micro_usd, 1) == figures(*runs).saved


def test_what_is_written_after_the_close_changes_neither_owner_nor_figures():
    close = DECEMBER + 14 * DAY
    records = [
        RegistrationChange(1, active=True, at=close - 1, document={"owner": "nlp"}),
        failed("a", NOVEMBER, 2.0),
        failed("b", NOVEMBER, 3.0),
        decided("b", close - 1, 3.0),
    ]
    late = [
        RegistrationChange(2, active=True, at=close, document={"owner": "ads"}),
        decided("a", close, 2.0),
    ]
    before, after = (
        months.month_of(past(*of), "w", "2026-11", now=2 * DECEMBER)
        for of in (records, [*records, *late])
    )

    assert (before, 1) == (after, after.schema)
    assert ("nlp", Amount(1, 2_000_000)) == (after.owner, after.figures.failed)
    unnamed = RegistrationChange(1, active=True, at=1, document={"owner": 3})
    assert None is months.registered(past(unnamed), "owner")
    assert [None, "ads"] == [
        months.registered(past(*records, *late), "owner", *until) for until in ([close - 1], [])
    ]


AMOUNTS = st.none() | st.floats(0, 1e6)
TIMES = st.integers(NOVEMBER - 400 * DAY, DECEMBER + 400 * DAY)
ENTRIES = st.lists(st.tuples(st.sampled_from([decided, failed]), TIMES, AMOUNTS), max_size=20)


@given(ENTRIES, st.lists(st.tuples(TIMES, AMOUNTS), max_size=20))
def test_the_months_add_up_to_the_ledger(ended, ran):
    trials = [kind(f"t{n}", at, usd) for n, (kind, at, usd) in enumerate(ended)]
    runs = [production_run(n, at=at, usd=usd) for n, (at, usd) in enumerate(ran)]
    made = months.months_of(past(*trials, *runs), "w", now=2 * DECEMBER)
    total = MonthFigures.total([one.figures for one in made])

    assert Amount.of([one.spent_usd for one in trials]) == total.spent
    assert Amount.of([one.usd for one in runs]) == total.production


@given(ledgers([*KINDS, "damaged"]))
def test_a_month_is_the_same_by_the_part_of_the_ledger_that_it_needs(written):
    ledger = Ledger(MemoryLedger())
    for _, records in written:
        for record in records:
            ledger.append("w", record)

    for name in months.months_between(BEGIN, written[-1][0]):
        part, whole = (
            months.month_of(ledger.history("w", since=since), "w", name, now=1)
            for since in (months.history_since(name), -math.inf)
        )
        assert whole == part


CLOSE = DECEMBER + 14 * DAY


@pytest.mark.parametrize(
    ("kept", "read_at", "replaced"),
    [
        (DECEMBER, DECEMBER, True),
        (CLOSE - 1, CLOSE, True),
        (CLOSE, CLOSE, False),
        (CLOSE + 1, CLOSE, True),
        (CLOSE, CLOSE + 1, False),
        (None, CLOSE + 1, True),
    ],
)
def test_a_reading_replaces_a_month_unless_one_after_its_close_is_kept(kept, read_at, replaced):
    before = None if kept is None else Month("w", "2026-11", None, kept, MonthFigures())

    assert replaced is Month("w", "2026-11", None, read_at, MonthFigures()).replaces(before)
