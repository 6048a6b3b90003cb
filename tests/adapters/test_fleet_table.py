"""Rows in DynamoDB: read all at once, replaced only as they were read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.adapters.fleet_table import SHARDS, DynamoDbFleet
from compilegate.domain.fleet.row import Row, write_row
from compilegate.ports import FleetTable, RawFleet, StoredRow
from tests.fakes import MemoryFleet


@pytest.fixture(params=["dynamodb", "memory"])
def raw(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryFleet()
    return DynamoDbFleet(request.getfixturevalue("dynamodb"), "ledger")


def test_a_row_is_written_over_the_one_that_was_read(raw: RawFleet) -> None:
    table = FleetTable(raw)

    assert StoredRow(None, "") == table.row("w")
    assert table.put_row(Row("w", owner="a"), "")
    assert not table.put_row(Row("w", owner="b"), "")

    first = table.row("w")

    assert table.put_row(Row("w", owner="c"), first.version)
    assert not table.put_row(Row("w", owner="d"), first.version)
    assert Row("w", owner="c") == table.row("w").row


def test_rows_come_by_name_and_say_which_could_not_be_read(raw: RawFleet) -> None:
    table = FleetTable(raw)
    names = [f"w{number:02d}" for number in range(40)]
    for name in reversed(names):
        assert table.put_row(Row(name), "")
    newer = json.dumps({**write_row(Row("later")), "schema": 2})
    assert raw.put("fleet", "later", newer, "")
    assert raw.put("fleet", "broken", "{", "")
    assert raw.put("month#2026-11", "w01", "{}", "")

    found = table.rows()

    assert names == [row.workload for row in found.read]
    assert (("broken",), ("later",), 2) == (found.damaged, found.newer, found.unread)
    assert StoredRow(None, "{") == table.row("broken")
    assert StoredRow(None, newer, newer=True) == table.row("later")


def test_a_damaged_row_is_replaced(raw: RawFleet) -> None:
    assert raw.put("fleet", "w", "{", "")

    assert FleetTable(raw).put_row(Row("w"), "{")


@pytest.mark.parametrize("entry", [{}, {"entry": {"N": "1"}}])
def test_an_item_without_text_is_replaced(dynamodb: Any, entry: dict[str, Any]) -> None:
    table = FleetTable(DynamoDbFleet(dynamodb, "ledger"))
    assert table.put_row(Row("w"), "")
    (item,) = dynamodb.scan(TableName="ledger")["Items"]
    del item["entry"]
    dynamodb.put_item(TableName="ledger", Item={**item, **entry})

    assert ("w",) == table.rows().damaged
    assert table.put_row(Row("w"), table.row("w").version)


def test_rows_lie_in_all_partitions(dynamodb: Any) -> None:
    table = FleetTable(DynamoDbFleet(dynamodb, "ledger"))
    for number in range(300):
        assert table.put_row(Row(f"w{number}"), "")

    items = dynamodb.scan(TableName="ledger")["Items"]

    assert {f"fleet#{shard}" for shard in SHARDS} == {item["pk"]["S"] for item in items}
