"""The function Project, and the fleet as rows say it, from the ledgers where some are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import Mock, call

import pytest

from compilegate.domain.fleet.fold import read_since, unreadable
from compilegate.domain.fleet.month import (
    Amount,
    closes_at,
    month_at,
    months_between,
    months_of,
    window_of,
)
from compilegate.domain.fleet.row import UNREADABLE, Need, Row
from compilegate.domain.records.production import RegistrationChange
from compilegate.domain.records.trials import TrialFailed
from compilegate.ports import FleetTable, Ledger, Services
from compilegate.usecases.fleet import project as module
from compilegate.usecases.fleet.project import Fleet, fold, keep_month, project, read_fleet
from compilegate.usecases.records import to_json
from tests.domain.workload_builder import SOUND
from tests.fakes import MemoryFleet, MemoryLedger, MemoryStore, services
from tests.usecases.production_ledger import (
    DAY,
    NOW,
    decided,
    started,
    write,
)


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
    """Items of this kind that somebody else writes first, so many times."""

    lost: int = 0
    contested: str = "fleet"

    def put(self, kind: str, workload: str, text: str, previous: str) -> bool:
        if kind == self.contested and self.lost:
            self.lost -= 1
            return False
        return super().put(kind, workload, text, previous)


DAMAGED, NEWER = "{", '{"schema": 99, "fold": 1}'


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
    execution = "arn:aws:states:us-east-1:1:execution:evaluate:a-t1"
    of.locks.acquire("a", execution, now=NOW, expires_at=NOW + 60)
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


def test_figures_that_cannot_be_kept_leave_the_row_to_a_person() -> None:
    of = cloud()
    write(of, "a", decided("t1", NOW - 60, spent_usd=2.0))
    project(batch("a trial#t1"), services=of)
    write(of, "a", decided("t2", NOW, spent_usd=1e14))

    assert {"batchItemFailures": []} == project(batch("a trial#t2"), services=of)
    assert ((Need("unreadable", NOW),), Amount(1, 2_000_000)) == (
        row("a", of).needs, row("a", of).trials,
    )  # fmt: skip


@pytest.mark.parametrize("lost", [0, 4, 5])
@pytest.mark.parametrize(
    ("contested", "again"), [("fleet", True), (f"month#{month_at(NOW)}", False)]
)
def test_a_row_that_somebody_else_has_written_is_folded_again_and_a_month_written_again(
    contested: str, lost: int, *, again: bool
) -> None:
    of = cloud(fleet=FleetTable(Contested(lost=lost, contested=contested)))

    answer = project(batch("a flag#1"), services=of)

    assert [{"itemIdentifier": "0"}] * (lost == 5) == answer["batchItemFailures"]
    reads = min(lost + 1, 5) if again else 1
    assert reads == len(of.ledger.raw.read)  # type: ignore[attr-defined]


CLOSE = closes_at(month_at(NOW))


@pytest.mark.parametrize(
    ("kept", "read", "owner", "written"),
    [
        (CLOSE - 2, CLOSE - 1, "a", False),
        (CLOSE - 2, CLOSE - 1, "b", True),
        (CLOSE - 1, CLOSE, "a", True),  # once after its close
        (CLOSE, CLOSE + 1, "a", False),
        (CLOSE, CLOSE + 1, "b", False),
        (CLOSE + 2, CLOSE + 1, "b", True),  # that of a clock that was ahead
        (None, CLOSE - 1, "b", False),  # of a newer release
    ],
)
def test_a_month_is_written_where_it_changed_and_once_after_its_close(
    kept: int | None, read: int, owner: str, *, written: bool
) -> None:
    of = cloud()
    (month,) = months_of(of.ledger.history("a"), "a", now=NOW, after=month_at(NOW - 31 * DAY))
    if kept is None:
        of.fleet.raw.texts[f"month#{month.month}", "a"] = NEWER  # type: ignore[attr-defined]
    else:
        of.fleet.put(replace(month, owner="a", read_at=kept), "")
    before = of.fleet.month(month.month, "a")
    keep_month(replace(month, owner=owner, read_at=read), of)
    after = of.fleet.month(month.month, "a")

    assert before == after or after.item == replace(month, owner=owner, read_at=read)
    assert written is (before != after)


def test_a_fold_goes_on_where_its_row_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    of = cloud()
    write(of, "a", decided("t1", NOW - 60, spent_usd=2.0))
    of.clock.seconds += 100 * DAY  # type: ignore[attr-defined]
    project(batch("a trial#t1"), services=of)
    base, read = row("a", of), Mock(side_effect=of.ledger.history)
    monkeypatch.setattr(Ledger, "history", read)
    _, months = fold(base, of)

    assert call("a", since=read_since(base)) == read.call_args
    since = window_of(base.closed.through).until
    assert months_between(since, of.clock.now()) == [one.month for one in months]


@pytest.mark.parametrize("made", ["row_of", "months_of"])
def test_neither_row_nor_months_are_kept_where_one_cannot_be(
    made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: Any = getattr(module, made)

    def broken(*arguments: Any, **named: Any) -> Any:
        of = sound(*arguments, **named)
        made_wrong = [replace(one, owner=3) for one in (of if isinstance(of, list) else [of])]
        return made_wrong if isinstance(of, list) else made_wrong[0]

    monkeypatch.setattr(module, made, broken)
    of = cloud()

    assert (unreadable(Row("a"), NOW), []) == fold(Row("a"), of)


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


class OutOfReach(MemoryStore):
    """A bucket that does not answer."""

    def get(self, key: str) -> bytes:
        raise ConnectionError


SPEC = "workloads/a/specs/d1.json"
BODY = to_json({"workload": replace(SOUND, name="a").to_dict(), "source_key": "s"})


@pytest.mark.parametrize(
    ("key", "spec", "machine"),
    [
        (SPEC, BODY, SOUND.training.instance_type),
        (SPEC, None, None),
        (SPEC, b"{", None),
        (SPEC, b'{"workload": {}}', None),
        (SPEC, "out of reach", None),
        ("workloads/b/specs/d1.json", BODY, None),  # of another workload
        (None, None, None),
    ],
)
def test_a_registration_that_cannot_be_read_leaves_the_rest_of_the_row(
    key: str | None, spec: Any, machine: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    of = cloud(store=OutOfReach()) if spec == "out of reach" else cloud()
    document = {"owner": "nlp", "spec_key": key}
    write(of, "a", RegistrationChange(1, active=True, at=NOW, document=document))
    if isinstance(spec, bytes):
        of.store.put(str(key), spec)

    assert {"batchItemFailures": []} == project(batch("a registered#1"), services=of)
    assert ("nlp", machine) == (row("a", of).owner, row("a", of).instance)
    assert (machine is None and key is not None) is bool(caplog.records)


@pytest.fixture
def stage() -> Services:
    """Rows of a and c, damaged ones of b and e, a newer release's of d; g and h have none.

    Of f there is a row that covers nothing, i was only uploaded, no ledger of h can be read.
    """
    made = services()
    fleet = made.fleet.raw
    assert isinstance(fleet, MemoryFleet)
    for name in "abcdefghi":
        made.store.put(f"workloads/{name}/specs/1.json", b"{}")
    for name in "ca":
        made.fleet.put(Row(workload=name, upto={"flag": "flag#1"}), "")
    made.fleet.put(Row(workload="f"), "")
    fleet.texts |= {("fleet", "b"): DAMAGED, ("fleet", "e"): DAMAGED, ("fleet", "d"): NEWER}
    for name in "bge":
        made.ledger.append(name, TrialFailed(5, "0mabc123", reason="x", error="y"))
    made.ledger.raw.put_once("h", "flag#1", ["no entry"])  # type: ignore[arg-type]
    return made


def test_what_has_no_readable_row_is_folded_and_a_newer_releases_left_alone(
    stage: Services,
) -> None:
    fleet = read_fleet(stage)

    assert ["a", "b", "c", "e", "g", "h"] == [row.workload for row in fleet.rows]
    assert ((), ("d",)) == (fleet.building, fleet.unread)
    assert [*"abcdegh"] == fleet.names
    assert [UNREADABLE] == [need.code for need in fleet.rows[-1].needs]


def test_a_stage_without_workloads_has_none() -> None:
    assert Fleet() == read_fleet(services())


def test_a_hundred_rows_are_folded_damaged_ones_first_and_the_rest_waits() -> None:
    of = services()
    names = [f"w{number:03}" for number in range(102)]
    for name in names:
        of.store.put(f"workloads/{name}/specs/1.json", b"{}")
    damaged = {("fleet", name): DAMAGED for name in names[-2:]}
    of.fleet.raw.texts |= damaged  # type: ignore[attr-defined]
    assert Fleet(building=(*names[98:100],)) == read_fleet(of)
