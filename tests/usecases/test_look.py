"""What the daily pass reads of a ledger: little, and its figures are those of the whole ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.fleet.row import DayOfRuns, Row
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.recorded_run import LOOK_BACK_SECONDS
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.production import BegunRun, ProductionRun
from compilegate.usecases.fleet.project import SOUND, RowRepair, fold_workload
from compilegate.usecases.operations.sweep import Look, day_by_ledger, look_at, sweep
from tests.domain.fleet.ledgers import ledgers
from tests.fakes import MemoryTopic, services
from tests.usecases.production_ledger import DAY, NOW, ran, started, write


def look(of: Any) -> Look:
    return look_at("w", None, RowRepair(of), of)


@pytest.fixture(autouse=True)
def never_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is compared with its whole ledger because of the day."""
    monkeypatch.setattr(RowRepair, "_is_compared_today", lambda *_: False)


@given(ledger=ledgers(), later=st.integers(1, 2 * DAY))  # a second counts once it is over
def test_the_figures_of_a_day_are_those_of_the_whole_ledger(ledger: Any, later: int) -> None:
    of: Any = services()
    for at, records in ledger:
        of.clock.seconds = at
        for record in records:
            write(of, "w", record)
    fold_workload("w", of)
    of.clock.seconds += later
    now = of.clock.now()

    whole = day_of(of.ledger.history("w"), since=now - DAY, until=now)
    by_row = look(of).day
    if by_row is not None:
        assert rounded(whole) == rounded(by_row)
    assert rounded(whole) == rounded(day_by_ledger("w", of))


def rounded(day: DayFigures) -> DayFigures:
    """Sums of floats, in whichever order."""
    return replace(day, production_usd=round(day.production_usd, 6))


def test_of_years_of_runs_only_what_the_day_needs_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    of: Any = services()
    for day in range(700, -1, -1):
        ran(of, "w", NOW - day * DAY, "baseline")
    of.clock.seconds = NOW
    fold_workload("w", of)
    read: list[int] = []
    entries = of.ledger.raw.entries

    def counted(*place: str) -> Any:
        read.append(len(entries(*place)))
        return entries(*place)

    monkeypatch.setattr(of.ledger.raw, "entries", counted)
    of.clock.seconds += 3600
    found: Any = look(of)
    assert (SOUND, 1) == (found.row, found.day.production_runs)
    assert 16 >= sum(read)


@pytest.mark.parametrize(
    ("row", "age", "is_read"),
    [
        (False, RUN_SECONDS, True),
        (False, RUN_SECONDS + 2 * DAY, False),
        ("another", LOOK_BACK_SECONDS, True),
        ("another", LOOK_BACK_SECONDS + 2 * DAY, False),
        ("this", LOOK_BACK_SECONDS + 2 * DAY, True),
        ("this", RUN_SECONDS, True),
        ("this", RUN_SECONDS + 2 * DAY, False),  # it has ended, whatever the row says
    ],
)
def test_runs_are_read_as_far_back_as_one_may_have_left_a_job(
    monkeypatch: pytest.MonkeyPatch, row: Any, age: int, is_read: bool
) -> None:
    of: Any = services()
    of.clock.seconds = NOW
    run, other = (naming.trial_id(1000 * at) for at in (NOW - age, NOW - 3600))
    write(
        of, "w", BegunRun(NOW - age, run, "execution", "baseline", "flag", 1, 1, "spec", "source")
    )
    opened = {"this": (run,), "another": (other,)}
    monkeypatch.setattr(
        RowRepair, "row", lambda *_: Row("w", open_runs=opened[row]) if row else None
    )
    found = look(of)
    assert [run] * is_read == [one.run for one in found.runs]
    assert [run] * is_read == [one.of.run for one in found.suspects]  # type: ignore[union-attr]


class Rows:
    """One row, and what was done with it."""

    def __init__(self, row: Row | None, outcome: str) -> None:
        self.row = lambda _: row
        self.check = lambda *_: outcome


FIRST = (NOW - DAY) // DAY


def run_of(of: Any, began: int, ended: int, arm: str = "baseline") -> None:
    """A run that may have waited for weeks."""
    run, result = naming.trial_id(1000 * began), {"finished": True}
    write(of, "w", ProductionRun(run, "j", arm, began, ended, result, True, "flag", at=ended))


@pytest.mark.parametrize(
    ("outcome", "days", "runs"),
    [
        (SOUND, {FIRST: 1, FIRST + 1: 1}, 1),
        (SOUND, {FIRST - 1: 9, FIRST: 2}, 1),
        (SOUND, {FIRST: 1, FIRST + 1: 2}, 2),
        ("repaired", {FIRST: 1, FIRST + 1: 1}, 2),
        (SOUND, None, 2),
    ],
)
def test_a_row_that_has_no_more_runs_than_were_read_saves_reading_a_month(
    outcome: str, days: Any, runs: int
) -> None:
    """Of the runs one ended as the row's first day began, one began long ago and ended today."""
    of: Any = services()
    of.clock.seconds = NOW
    run_of(of, FIRST * DAY - 3600, FIRST * DAY)
    run_of(of, FIRST * DAY - 7200, FIRST * DAY - 1, "compile")
    run_of(of, NOW - 7200, NOW - 3600)
    run_of(of, NOW - 20 * DAY, NOW - 60)
    counted = days and tuple(DayOfRuns(day, many, 0) for day, many in days.items())
    rows: Any = Rows(Row("w", days=counted) if counted else None, outcome)
    found = look_at("w", None, rows, of)

    assert found.row == outcome
    assert found.day is not None
    assert runs == found.day.production_runs


@pytest.mark.parametrize(("seconds", "saved"), [(0, 3.0), (-1, 0.0)])
def test_what_a_run_of_the_day_saved_is_by_the_baselines_of_the_months_before(
    seconds: int, saved: float
) -> None:
    of: Any = services()
    of.clock.seconds = NOW
    for days, arm, usd in ((25, "baseline", 10.0), (22, "compile", 7.0), (20, "baseline", 10.0)):
        ran(of, "w", NOW - days * DAY, arm, usd=usd)
    ran(of, "w", NOW - DAY + seconds, "compile", usd=7.0)
    ran(of, "w", NOW - 60, "baseline", finished=False)
    rows: Any = Rows(Row("w", days=(DayOfRuns(FIRST, 1, 0), DayOfRuns(FIRST + 1, 1, 0))), SOUND)
    found = look_at("w", None, rows, of)

    assert found.day is not None
    assert saved == found.day.saved_usd


def test_what_may_still_change_is_measured_after_the_sweep_and_what_fails_is_kept() -> None:
    of: Any = services()
    assert look_at("w", "arn:aws:states:::w-t", RowRepair(of), of).day is None
    write(of, "open", started("open", "t", NOW))
    assert look_at("open", None, RowRepair(of), of).day is None

    def broken(*_: str) -> None:
        raise ConnectionError("DynamoDB does not answer")

    of.ledger.raw.entries = broken
    failed = look(of)
    assert (DayFigures(), "DynamoDB does not answer") == (failed.day, str(failed.failure))
    of.store.put("workloads/w/specs/1.json", b"{}")
    with pytest.raises(ConnectionError):
        sweep({}, services=of, topic=MemoryTopic())
