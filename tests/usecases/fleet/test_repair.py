"""The daily pass over rows: what the stream has lost is found, folded anew and counted."""

from __future__ import annotations

import logging
import random
import zlib
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.fleet.fold import unreadable
from compilegate.domain.fleet.month import closes_at, month_at
from compilegate.domain.fleet.row import FOLD, Row
from compilegate.domain.ledger_keys import RUN_ENTRIES
from compilegate.domain.naming import trial_id
from compilegate.domain.records.production import ProductionRun
from compilegate.ports import FleetTable, Ledger, Services
from compilegate.usecases.fleet import project as module
from compilegate.usecases.fleet.project import (
    BUILT,
    NEWER,
    REPAIRED,
    SOUND,
    WAITING,
    RowRepair,
    fold,
    fold_workload,
    measure_repairs,
    project,
)
from compilegate.usecases.metrics import measure
from tests.domain.fleet.ledgers import BEGIN, ledgers
from tests.fakes import FixedClock, MemoryFleet, services
from tests.usecases.fleet.test_project import batch
from tests.usecases.production_ledger import DAY, NOW, decided, ran, write


def cloud() -> Services:
    """A workload whose row is what its ledger says, a day later."""
    of = services()
    ran(of, "a", NOW - 3600, "compile")
    fold_workload("a", of)
    later(of, DAY)
    return of


def later(of: Services, seconds: int) -> None:
    of.clock.seconds += seconds  # type: ignore[attr-defined]


def lost(of: Services, *records: Any) -> None:
    """Entries of which the stream says nothing, and a day after them."""
    for record in records:
        write(of, "a", record)
    later(of, DAY)


def run(job: str, at: int) -> ProductionRun:
    """A run that ended at ``at``, begun an hour before."""
    begun = trial_id(1000 * (at - 3600))
    return ProductionRun(begun, job, "compile", at - 3600, at, {}, True, "flag", at=at)


def check(of: Services, name: str = "a", lock: str | None = None) -> str:
    recent = of.ledger.recent(name, of.clock.now() - 14 * DAY)
    return RowRepair(of).check(name, recent, lock)


@pytest.fixture(autouse=True)
def never_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is compared with its whole ledger because of the day."""
    monkeypatch.setattr(RowRepair, "_is_compared_today", lambda *_: False)


def test_a_row_that_is_not_there_is_built() -> None:
    of = cloud()
    ran(of, "b", NOW - 3600, "compile")

    assert [BUILT, SOUND] == [check(of, "b"), check(of, "b")]


@pytest.mark.parametrize(("fold", "outcome"), [(FOLD - 1, BUILT), (FOLD, REPAIRED)])
def test_a_row_that_an_older_release_has_folded_is_built_anew_which_is_no_error(
    fold: int, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    of = cloud()
    stored = of.fleet.row("a")
    assert stored.item is not None
    of.fleet.put(replace(stored.item, fold=fold), stored.version)
    lost(of, decided("t9", of.clock.now()))

    assert outcome == check(of)
    assert (outcome == REPAIRED) is bool(caplog.records)


@pytest.mark.parametrize(
    ("ago", "more", "written"), [(90 * DAY - 1, False, True), (90 * DAY, False, False),
                                 (90 * DAY, True, True)]
)  # fmt: skip
def test_a_month_that_was_closed_long_ago_is_written_again_with_its_row_alone(
    ago: int, *, more: bool, written: bool
) -> None:
    of, month = cloud(), month_at(NOW)
    of.fleet.raw.texts.pop((f"month#{month}", "a"))  # type: ignore[attr-defined]
    if more:
        write(of, "a", decided("t9", of.clock.now()))
    of.clock.seconds = closes_at(month) + ago  # type: ignore[attr-defined]

    assert (REPAIRED if more else SOUND) == Comparing(of).check("a", of.ledger.history("a"), None)
    assert written is (of.fleet.month(month, "a").item is not None)


def test_a_ledger_that_cannot_be_read_leaves_the_row_its_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = cloud()
    before, recent = of.fleet.row("a").item, of.ledger.history("a")
    assert before is not None
    monkeypatch.setattr(Ledger, "history", Mock(side_effect=ValueError))
    Comparing(of).check("a", recent, None)

    assert unreadable(before, of.clock.now()) == of.fleet.row("a").item


@pytest.mark.parametrize(("text", "outcome"), [("{", REPAIRED), ('{"schema": 2}', NEWER)])
def test_a_damaged_row_is_repaired_and_one_of_a_newer_release_counted(
    text: str, outcome: str
) -> None:
    raw = MemoryFleet({("fleet", "a"): text})
    of = replace(cloud(), fleet=FleetTable(raw))

    assert outcome == check(of)
    assert (text == raw.item("fleet", "a")) == (outcome == NEWER)


@pytest.mark.parametrize(("ago", "left"), [(-1, False), (0, True), (899, True), (900, False)])
def test_what_was_just_written_is_left_to_the_stream(ago: int, *, left: bool) -> None:
    of = cloud()
    write(of, "a", decided("t9", of.clock.now() - ago))
    if left:
        assert SOUND == Comparing(of).check("a", of.ledger.history("a"), None)
        of = cloud()
        write(of, "a", decided("t9", of.clock.now() - ago))
    assert (SOUND if left else REPAIRED) == check(of)


def test_what_a_pass_has_no_time_for_waits_for_the_next() -> None:
    of = cloud()
    lost(of, decided("t9", of.clock.now()))
    recent, outcomes = of.ledger.history("a"), []
    for name, seconds in (("b", 401), ("a", 401), ("a", 400)):
        at_work = RowRepair(of)
        later(of, seconds)
        outcomes.append(at_work.check(name, recent, None))
    at_work = Comparing(of)
    later(of, 401)

    assert [WAITING, WAITING, REPAIRED] == outcomes
    assert SOUND == at_work.check("a", recent, None)


def test_a_row_that_was_written_meanwhile_is_no_repair() -> None:
    of = cloud()
    lost(of, decided("t9", of.clock.now()))
    at_work = RowRepair(of)
    fold_workload("a", of)

    assert SOUND == at_work.check("a", of.ledger.history("a"), None)


@pytest.mark.parametrize("sound", [True, False])
def test_a_pass_that_somebody_else_is_faster_than_leaves_the_months_of_the_last_fold(
    sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = cloud()
    lost(of, *([] if sound else [decided("t8", of.clock.now(), spent_usd=2.0)]))
    other = decided("t9", of.clock.now(), spent_usd=3.0)

    def slowly(*arguments: Any) -> Any:
        folded = fold(*arguments)
        monkeypatch.setattr(module, "fold", fold)
        write(of, "a", other)
        fold_workload("a", of)
        return folded

    monkeypatch.setattr(module, "fold", slowly)

    assert SOUND == Comparing(of).check("a", of.ledger.history("a"), None)
    row, month = of.fleet.row("a").item, of.fleet.month(month_at(of.clock.now()), "a").item
    assert row is not None
    assert month is not None
    assert (3 if sound else 5) * 1_000_000 == row.trials.micro_usd == month.figures.spent.micro_usd


def test_each_row_is_compared_with_its_whole_ledger_once_in_so_many_days(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is older than a row's newest keys is not seen otherwise."""
    monkeypatch.undo()
    of = cloud()
    run = of.ledger.history("a", RUN_ENTRIES).runs[0]
    lost(of, replace(run, run="0" * 8, job="j"))
    days = (zlib.crc32(b"a") - of.clock.now() // DAY) % 90
    outcomes = []
    for _ in range(90):
        outcomes.append(check(of))
        later(of, DAY)

    assert [SOUND] * days + [REPAIRED] + [SOUND] * (89 - days) == outcomes


def test_repairs_are_counted_as_metrics(caplog: pytest.LogCaptureFixture) -> None:
    of = services()
    with caplog.at_level(logging.INFO, "compilegate"):
        counts = measure_repairs([SOUND, BUILT, REPAIRED, BUILT, NEWER, WAITING], of)

        measure({"SavedUsd": 1.5}, "saved", of, Workload="a")

    line, saved = caplog.records
    assert (2, 1) == (line.RowsBuilt, line.RowsRepaired)  # type: ignore[attr-defined]
    metrics = {
        "Namespace": "Compilegate", "Dimensions": [["Stage", "Workload"]],
        "Metrics": [{"Name": "SavedUsd", "Unit": "None"}],
    }  # fmt: skip
    written = {"Timestamp": NOW * 1000, "CloudWatchMetrics": [metrics]}
    expected = {"SavedUsd": 1.5, "Workload": "a", "Stage": "dev", "_aws": written}
    assert expected.items() <= vars(saved).items()
    assert {"rows_built": 2, "rows_repaired": 1, "rows_newer": 1, "rows_waiting": 1} == counts


class Comparing(RowRepair):
    """A pass on the day on which each row is compared with its whole ledger."""

    def _is_compared_today(self, workload: str) -> bool:
        return True


@given(ledgers(apart=DAY), st.randoms(), st.data())
def test_whatever_the_stream_does_the_pass_leaves_what_the_ledger_says(
    written: Any, chance: random.Random, data: st.DataObject
) -> None:
    """Records twice, out of order and lost, written by clocks a day apart."""
    of = replace(services(), clock=FixedClock(BEGIN))
    sent = []
    for at, records in written:
        of.clock.seconds = at  # type: ignore[attr-defined]
        for record in records:
            write(of, "w", record)
            times = data.draw(st.sampled_from([0, 1, 2]))
            sent += [f"w {record.key}"] * times
        if data.draw(st.booleans()):
            chance.shuffle(sent)
            project(batch(*sent), services=of)
            sent = []
    later(of, 2 * DAY)  # nothing was written by a clock so far ahead
    whole = of.ledger.history("w")
    Comparing(of).check("w", whole, None)

    row, _ = fold(Row("w"), of)
    found = of.fleet.row("w").item
    assert found is not None
    assert row == replace(found, read_at=row.read_at, closed=row.closed)
