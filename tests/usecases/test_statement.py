"""A month's statement: what is kept of each workload, the ledger of the others, none left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fleet.month import Month, MonthFigures, month_of
from compilegate.domain.fleet.row import Row
from compilegate.domain.records.production import RegistrationChange
from compilegate.ports import Ledger, Services
from compilegate_statement.read import statement
from tests.fakes import FixedClock, services
from tests.usecases.production_ledger import decided, write

NOVEMBER = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
DECEMBER = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
BROKEN_LEDGER = "broken-ledger"


class ByWorkload:
    """RawLedger of many workloads; that of one cannot be read."""

    def __init__(self) -> None:
        self.by_workload: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
        self.read: list[str] = []
        self.wholes: list[str] = []

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.by_workload[workload].setdefault(sort_key, entry)

    def entries(
        self, workload: str, prefix: str = "", last: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        self.read.append(workload)
        self.wholes += [workload] if last is None else []
        if workload == BROKEN_LEDGER:
            raise ConnectionError("reset")
        own = self.by_workload[workload]
        return [own[key] for key in sorted(own) if prefix <= key <= (last or "~")]


def stage(now: int = DECEMBER) -> tuple[Services, ByWorkload]:
    raw = ByWorkload()
    return replace(services(), ledger=Ledger(raw), clock=FixedClock(now)), raw


def add(cloud: Services, name: str, owner: str) -> None:
    cloud.store.put(f"workloads/{name}/specs/s.json", b"{}")
    write(cloud, name, RegistrationChange(1, active=True, at=1, document={"owner": owner}))


def keep(cloud: Services, name: str) -> None:
    past = cloud.ledger.history(name)
    month = month_of(past, name, "2026-11", now=cloud.clock.now())
    assert cloud.fleet.put(month, "")


@pytest.fixture
def cloud() -> Services:
    cloud, _ = stage()
    for n, (name, owner) in enumerate((("kept", "ml"), ("ledger", "ml"), ("zads", "ads"))):
        add(cloud, name, owner)
        write(cloud, name, decided("a", NOVEMBER, spent_usd=10.0**n))
    add(cloud, "idle", "ml")
    keep(cloud, "kept")
    return cloud


def test_what_is_kept_is_not_read_again_and_what_is_damaged_or_newer_is(cloud: Services) -> None:
    raw: Any = cloud.ledger.raw
    texts: Any = cloud.fleet.raw
    kind = "month#2026-11"
    texts.put(kind, "zads", "{", "")
    texts.put(kind, "gone", '{"schema": 99}', "")
    cloud.fleet.put(Row("idle", owner="ml", read_at=NOVEMBER + 5), "")  # before it had a month
    raw.read.clear()
    raw.wholes.clear()
    made = statement("2026-11", cloud)

    assert {"gone", "ledger", "zads"} == set(raw.read)
    assert [] == raw.wholes
    months = {one.workload: one for one in made.months}
    assert {"gone", "idle", "kept", "ledger", "zads"} == months.keys()
    assert Month("idle", "2026-11", "ml", NOVEMBER + 5, MonthFigures()) == months["idle"]
    assert "2026-12" == statement("2026-12", cloud).month  # that has just begun


def test_what_cannot_be_read_is_named_to_every_owner(cloud: Services) -> None:
    add(cloud, BROKEN_LEDGER, "cv")
    cloud.fleet.put(Row(BROKEN_LEDGER, owner="cv", unread=1), "")
    cloud.store.put("workloads/trial-alone/specs/s.json", b"{}")

    for owner in (None, "", "ads", "cv", "ml"):
        made = statement("2026-11", cloud, owner=owner).document()
        assert [BROKEN_LEDGER] == made["unread"]
    for owner, own in (("ml", {"kept", "ledger", "idle"}), ("", {"trial-alone"})):
        assert own == {one.workload for one in statement("2026-11", cloud, owner=owner).months}


@pytest.mark.parametrize(
    ("month", "owner", "field", "fix"),
    [
        ("2026-13", None, "--month", "2026-12"),
        ("2026-1", None, "--month", "2026-12"),
        ("November", None, "--month", "2026-12"),
        ("2027-01", None, "--month", "2026-12"),
        ("9999-12", None, "--month", "2026-12"),
        ("2026-11", "mll", "--owner", "ml?"),
        ("2026-11", "nobody-like-that", "--owner", "ads, ml"),
    ],
)
def test_bad_input_is_named_with_its_value_and_what_helps(
    cloud: Services, month: str, owner: str | None, field: str, fix: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        statement(month, cloud, owner=owner)

    assert (field, owner or month) == (error.value.field, error.value.value)
    assert error.value.fix.endswith(fix)
