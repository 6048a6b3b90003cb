"""A month's statement: what is kept of each workload, the ledger of the others, none left out."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fleet.month import MonthFigures, month_of
from compilegate.domain.fleet.row import Row
from compilegate.domain.records.production import RegistrationChange
from compilegate.domain.records.trials import TrialFailed
from compilegate.ports import Ledger, Services
from compilegate.usecases.fleet.project import fold_workload
from compilegate_statement import read as module
from compilegate_statement.read import statement
from tests.domain.production.run_builder import production_run
from tests.fakes import FixedClock, services
from tests.usecases.production_ledger import decided, write

NOVEMBER = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
DECEMBER = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
DAY = 86_400
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


def test_a_month_that_is_not_kept_is_read_from_the_ledger(cloud: Services) -> None:
    made = statement("2026-11", cloud).document()

    assert [("zads", 100_000_000), ("kept", 1_000_000), ("ledger", 10_000_000)] == [
        (one["workload"], one["spent"]["micro_usd"]) for one in made["workloads"]
    ]
    assert [("ads", 1, 100_000_000), ("ml", 2, 11_000_000)] == [
        (one["owner"], one["workloads"], one["spent"]["micro_usd"]) for one in made["owners"]
    ]
    total = made["total"]
    assert (1, 3, 3, 111_000_000, 1, []) == (
        made["schema"], total["workloads"], total["entries"], total["spent"]["micro_usd"],
        made["idle"], made["unread"],
    )  # fmt: skip


def test_what_is_kept_is_not_read_again_and_what_is_damaged_or_newer_is(cloud: Services) -> None:
    raw: Any = cloud.ledger.raw
    texts: Any = cloud.fleet.raw
    kind = "month#2026-11"
    texts.put(kind, "zads", "{", "")
    texts.put(kind, "gone", '{"schema": 99}', "")
    raw.read.clear()
    raw.wholes.clear()
    made = statement("2026-11", cloud)

    assert {"gone", "idle", "ledger", "zads"} == set(raw.read)
    assert [] == raw.wholes
    assert {"gone", "idle", "kept", "ledger", "zads"} == {one.workload for one in made.months}


def test_what_has_a_row_and_no_month_had_nothing_in_it_unless_entries_are_unreadable(
    cloud: Services,
) -> None:
    raw: Any = cloud.ledger.raw
    add(cloud, "later", "late")
    for row in (
        Row("later", owner="late"),
        Row("ledger", unread=1),
        Row("kept", unread=1),
    ):
        assert cloud.fleet.put(row, "")
    raw.read.clear()
    made = statement("2026-11", cloud)

    assert {"idle", "kept", "ledger", "zads"} == set(raw.read)
    assert {"later": "late"} == {
        one.workload: one.owner for one in made.months if one.figures == MonthFigures()
        and one.workload != "idle"
    }  # fmt: skip
    assert 111_000_000 == made.document()["total"]["spent"]["micro_usd"]


def test_what_cannot_be_read_is_named_to_every_owner(cloud: Services) -> None:
    add(cloud, BROKEN_LEDGER, "cv")
    cloud.fleet.put(Row(BROKEN_LEDGER, owner="cv", unread=1), "")
    cloud.store.put("workloads/trial-alone/specs/s.json", b"{}")

    for owner in (None, "", "ads", "cv", "ml"):
        made = statement("2026-11", cloud, owner=owner).document()
        assert [BROKEN_LEDGER] == made["unread"]
    for owner, own in (("ml", {"kept", "ledger", "idle"}), ("", {"trial-alone"})):
        assert own == {one.workload for one in statement("2026-11", cloud, owner=owner).months}


def test_what_cannot_be_added_up_is_named_and_keeps_back_no_other(
    cloud: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(past: Any, name: str, *args: Any, **more: Any) -> Any:
        if name == "ledger":
            raise OverflowError
        return month_of(past, name, *args, **more)

    monkeypatch.setattr(module, "month_of", fail)
    made = statement("2026-11", cloud).document()

    assert (["ledger"], 101_000_000) == (made["unread"], made["total"]["spent"]["micro_usd"])


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


def test_a_month_is_provisional_until_it_is_closed(cloud: Services) -> None:
    clock: Any = cloud.clock
    states = []
    for clock.seconds in (DECEMBER - 1, DECEMBER + 14 * DAY - 1, DECEMBER + 14 * DAY):
        made = statement("2026-11", cloud).document()
        states.append((made["state"], made["closes_at"]))

    closes = DECEMBER + 14 * DAY
    assert [("provisional", closes), ("provisional", closes), ("final", closes)] == states


def test_of_ten_thousand_workloads_the_sum_is_the_ledgers_to_the_micro_dollar() -> None:
    rng = random.Random(28)
    cloud, raw = stage()
    expected = {"decided": 0, "failed": 0, "stopped": 0, "production": 0}
    entries = 0
    for n in range(10_000):
        name = f"w{n:05}"
        cloud.store.put(f"workloads/{name}/specs/s.json", b"{}")
        for place in range(4):
            kind = rng.choice(list(expected))
            at, usd = (
                rng.randrange(NOVEMBER - 9 * DAY, DECEMBER + 9 * DAY),
                rng.lognormvariate(3, 3),
            )
            if kind == "decided":
                record: Any = decided(f"t{place}", at, spent_usd=usd)
            elif kind == "production":
                record = production_run(place, started_at=at, at=at, usd=usd)
            else:
                error = "ABORTED" if kind == "stopped" else "States.TaskFailed"
                record = TrialFailed(at, f"t{place}", error=error, spent_usd=usd)
            write(cloud, name, record)
            if NOVEMBER <= at < DECEMBER:
                expected[kind] += round(usd * 1_000_000)
                entries += 1
        if n % 10 == 0:
            fold_workload(name, cloud)
        elif n % 3:
            keep(cloud, name)
    total = statement("2026-11", cloud).document()["total"]

    assert expected == {kind: total[kind]["micro_usd"] for kind in expected}
    assert entries == total["entries"]
    assert 10_000 == len({*raw.by_workload})
