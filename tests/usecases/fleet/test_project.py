"""The function Project: rows and months follow the ledgers, whatever the stream sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from compilegate.domain import codec
from compilegate.domain.fleet.month import Amount, month_at, months_of
from compilegate.domain.fleet.row import Need, Row
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.production import RegistrationChange
from compilegate.ports import FleetTable, Ledger, Services
from compilegate.usecases.fleet import project as module
from compilegate.usecases.fleet.project import ATTEMPTS, project, read_fleet
from tests.fakes import MemoryFleet, MemoryLedger, MemoryStore, services
from tests.usecases.production_ledger import (
    DAY,
    NOW,
    decided,
    promote,
    ran,
    register,
    started,
    write,
)

EXECUTION = "arn:aws:states:us-east-1:1:execution:evaluate:a-t1"


@dataclass
class Spied(MemoryLedger):
    """A ledger that says which workloads were read; ``broken`` raise what is named."""

    read: list[str] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)

    def entries(
        self, workload: str, prefix: str = "", last: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        self.read.append(workload)
        if workload in self.broken:
            raise self.broken[workload]
        return super().entries(workload, prefix, last)


@dataclass
class Contested(MemoryFleet):
    """Items that somebody else writes first, so many times."""

    lost: int = 0

    def put(self, kind: str, workload: str, text: str, previous: str) -> bool:
        if kind == "fleet" and self.lost:
            self.lost -= 1
            return False
        return super().put(kind, workload, text, previous)


def cloud(**changed: Any) -> Services:
    return replace(services(), ledger=Ledger(Spied()), **changed)


def batch(*changed: str) -> dict[str, Any]:
    """The stream's records of ``WORKLOAD sort key``; sequence numbers count from 0."""
    keys = [one.split() for one in changed]
    records = [
        {"SequenceNumber": str(n), "Keys": {"pk": {"S": f"workload#{name}"}, "sk": {"S": key}}}
        for n, (name, key) in enumerate(keys)
    ]
    return {"Records": [{"eventName": "INSERT", "dynamodb": one} for one in records]}


def row(name: str, of: Services) -> Row:
    found = of.fleet.row(name).item
    assert found is not None
    return found


def test_a_batch_folds_each_workload_once_and_no_mark_of_the_deployment() -> None:
    of = cloud()
    for name in ("a", "b"):
        write(of, name, decided(f"t{name}", NOW - 60, spent_usd=2.0))
    changed = batch("a flag#1", "b trial#t", "a trial#ta", "_deployment drain#1", "a flag#1")

    assert {"batchItemFailures": []} == project(changed, services=of)
    assert ["a", "b"] == of.ledger.raw.read  # type: ignore[attr-defined]
    assert ["a", "b"] == [one.workload for one in of.fleet.rows().read]
    assert Amount(1, 2_000_000) == row("a", of).trials


def test_a_change_of_a_lock_folds_its_workload() -> None:
    of = cloud()
    write(of, "a", started("a", "t1", NOW))
    of.locks.acquire("a", EXECUTION, now=NOW, expires_at=NOW + 60)
    record = {"SequenceNumber": "0", "Keys": {"pk": {"S": "lock#a"}, "sk": {"S": "lock"}}}

    project({"Records": [{"eventName": "REMOVE", "dynamodb": record}]}, services=of)

    assert "t1" == row("a", of).upto["lock"]


def test_a_workload_that_cannot_be_read_is_sent_again_and_keeps_back_no_other() -> None:
    raw = Spied(broken={"b": ConnectionError()})
    of = replace(services(), ledger=Ledger(raw))

    answer = project(batch("a flag#1", "b flag#1", "c flag#1", "b flag#2"), services=of)

    assert {"batchItemFailures": [{"itemIdentifier": "1"}]} == answer
    assert ["a", "c"] == [one.workload for one in of.fleet.rows().read]


def test_a_ledger_that_is_broken_leaves_its_row_and_says_that_it_needs_a_person() -> None:
    raw = Spied()
    of = replace(services(), ledger=Ledger(raw))
    write(of, "a", decided("t1", NOW - 60, spent_usd=2.0))
    project(batch("a trial#t1"), services=of)
    raw.broken["a"] = ValueError()

    for _ in range(2):
        assert {"batchItemFailures": []} == project(batch("a flag#1"), services=of)
        of.clock.seconds += 5  # type: ignore[attr-defined]

    found = row("a", of)
    assert ((Need("unreadable", NOW),), 1) == (found.needs, found.unread)
    assert Amount(1, 2_000_000) == found.trials

    raw.broken.clear()
    project(batch("a flag#1"), services=of)

    assert ((), 0) == (row("a", of).needs, row("a", of).unread)


@pytest.mark.parametrize("usd", [1e14, 1.0])
def test_figures_that_cannot_be_kept_or_computed_leave_the_row_and_keep_back_no_other(
    usd: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = cloud()
    for name in ("a", "b"):
        of.store.put(f"workloads/{name}/specs/s.json", b"{}")
        write(of, name, decided("t1", NOW - 60, spent_usd=2.0))
    project(batch("a trial#t1"), services=of)
    months = of.fleet.months(month_at(NOW))
    if usd > 1:
        write(of, "a", decided("t2", NOW, spent_usd=usd))
    else:
        overflow(monkeypatch, "a")

    answer = project(batch("a trial#t2", "b trial#t1"), services=of)

    assert {"batchItemFailures": []} == answer
    assert [Need("unreadable", NOW)] == [*row("a", of).needs]
    assert Amount(1, 2_000_000) == row("a", of).trials == row("b", of).trials
    assert months.read[0] == of.fleet.months(month_at(NOW)).read[0]
    of.fleet.raw.texts.clear()  # type: ignore[attr-defined]
    assert [[Need("unreadable", NOW)], []] == [[*one.needs] for one in read_fleet(of).rows]


def overflow(monkeypatch: pytest.MonkeyPatch, workload: str) -> None:
    """Months of one workload cannot be computed."""

    def fail(past: WorkloadHistory, name: str, *args: Any, **more: Any) -> Any:
        if name == workload:
            raise OverflowError
        return months_of(past, name, *args, **more)

    monkeypatch.setattr(module, "months_of", fail)


def test_a_broken_ledger_without_a_row_gets_one() -> None:
    of = replace(services(), ledger=Ledger(Spied(broken={"a": ValueError()})))

    project(batch("a flag#1"), services=of)

    assert [Need("unreadable", NOW)] == [*row("a", of).needs]


@pytest.mark.parametrize("lost", [0, ATTEMPTS - 1, ATTEMPTS])
def test_a_row_that_somebody_else_has_written_is_folded_again(lost: int) -> None:
    of = cloud(fleet=FleetTable(Contested(lost=lost)))

    answer = project(batch("a flag#1"), services=of)

    assert [{"itemIdentifier": "0"}] * (lost == ATTEMPTS) == answer["batchItemFailures"]
    assert min(lost + 1, ATTEMPTS) == len(of.ledger.raw.read)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "left"), [('{"schema": 2}', True), ('{"fold": 99, "schema": 1}', True), ("{", False)]
)
def test_a_row_of_a_newer_release_is_left_alone_and_a_damaged_one_replaced(
    text: str, *, left: bool
) -> None:
    raw = MemoryFleet({("fleet", "a"): text})
    of = cloud(fleet=FleetTable(raw))

    assert {"batchItemFailures": []} == project(batch("a flag#1"), services=of)
    assert left == (raw.item("fleet", "a") == text)


def test_a_row_has_what_is_registered_and_what_runs_have_saved() -> None:
    of = cloud()
    register(of, "a", "nlp")
    document = {"owner": "nlp", "spec_key": "workloads/a/specs/d1.json"}
    write(of, "a", RegistrationChange(1, active=True, at=NOW, document=document))
    promote(of, "a", NOW - 7200)
    ran(of, "a", NOW - 60, "compile")

    project(batch("a registered#1"), services=of)

    found = row("a", of)
    assert ("nlp", "ml.g5.48xlarge", 1, "pytorch 2.13.0", "transformer", 3) == (
        found.owner, found.instance, found.instances, found.image, found.family,
        found.runs_per_week,
    )  # fmt: skip
    assert (1, 0) == found.week(NOW)
    month = of.fleet.month(month_at(NOW), "a").item
    assert month is not None
    assert ("nlp", 10_000_000) == (month.owner, month.figures.production.micro_usd)


@pytest.mark.parametrize("ahead", [DAY, 365 * DAY])
def test_what_a_clock_that_was_ahead_has_written_is_written_again(ahead: int) -> None:
    of = cloud()
    of.clock.seconds += ahead  # type: ignore[attr-defined]
    write(of, "a", decided("t1", NOW - 60, spent_usd=2.0))
    project(batch("a trial#t1"), services=of)
    of.clock.seconds = NOW  # type: ignore[attr-defined]
    write(of, "a", decided("t2", NOW, spent_usd=3.0))
    project(batch("a trial#t2"), services=of)

    month = of.fleet.month(month_at(NOW), "a").item
    assert month is not None
    assert Amount(2, 5_000_000) == row("a", of).trials == month.figures.decided
    assert row("a", of).closed.through < month_at(NOW)


class OutOfReach(MemoryStore):
    """A bucket that does not answer."""

    def get(self, key: str) -> bytes:
        raise ConnectionError


@pytest.mark.parametrize("spec", [None, b"{", b'{"workload": {}}', "out of reach"])
def test_a_registration_that_cannot_be_read_leaves_the_rest_of_the_row(spec: Any) -> None:
    of = cloud(store=OutOfReach()) if spec == "out of reach" else cloud()
    document = {"owner": "nlp", "spec_key": "workloads/a/specs/d1.json"}
    write(of, "a", RegistrationChange(1, active=True, at=NOW, document=document))
    if isinstance(spec, bytes):
        of.store.put("workloads/a/specs/d1.json", spec)

    assert {"batchItemFailures": []} == project(batch("a registered#1"), services=of)
    assert ("nlp", None) == (row("a", of).owner, row("a", of).instance)


def test_a_month_is_written_where_it_changed_and_left_where_a_newer_release_wrote_it() -> None:
    raw = MemoryFleet()
    of = cloud(fleet=FleetTable(raw))
    write(of, "a", decided("t1", NOW - 60, spent_usd=2.0))
    project(batch("a trial#t1"), services=of)
    kind = f"month#{month_at(NOW)}"
    before = raw.item(kind, "a")
    of.clock.seconds += 60  # type: ignore[attr-defined]

    project(batch("a trial#t1"), services=of)
    assert before == raw.item(kind, "a")

    write(of, "a", decided("t2", NOW, spent_usd=3.0))
    project(batch("a trial#t2"), services=of)
    month = of.fleet.month(month_at(NOW), "a").item
    assert month is not None
    assert Amount(2, 5_000_000) == month.figures.decided

    newer = str({**codec.write(month), "schema": 2}).replace("'", '"').replace("None", "null")
    raw.texts[kind, "a"] = newer
    write(of, "a", decided("t3", NOW, spent_usd=4.0))
    project(batch("a trial#t3"), services=of)
    assert (newer, Amount(3, 9_000_000)) == (raw.item(kind, "a"), row("a", of).trials)
