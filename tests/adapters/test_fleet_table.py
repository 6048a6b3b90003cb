"""Rows in DynamoDB: read all at once, replaced only as they were read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.adapters.stores import DynamoDbFleet
from compilegate.domain import codec
from compilegate.domain.fleet.row import Row
from compilegate.ports import FleetTable, RawFleet, Stored
from tests.adapters.conftest import Asked
from tests.fakes import MemoryFleet


def text(**changed: Any) -> str:
    """The item of a row."""
    return json.dumps({**codec.write(Row("w")), **changed})


@pytest.fixture(params=["dynamodb", "memory"])
def raw(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryFleet()
    return DynamoDbFleet(request.getfixturevalue("dynamodb"), "ledger")


def test_a_row_is_written_over_the_one_that_was_read(raw: RawFleet) -> None:
    table = FleetTable(raw)

    assert Stored(None, "") == table.row("w")
    assert table.put(Row("w", owner="a"), "")
    assert not table.put(Row("w", owner="b"), "")

    first = table.row("w")

    assert table.put(Row("w", owner="c"), first.version)
    assert not table.put(Row("w", owner="d"), first.version)
    assert Row("w", owner="c") == table.row("w").item


def test_rows_come_by_name_and_say_which_could_not_be_read(raw: RawFleet) -> None:
    table = FleetTable(raw)
    names = [f"w{number:02d}" for number in range(40)]
    for name in reversed(names):
        assert table.put(Row(name), "")
    assert raw.put("month#2026-11", "w01", "{}", "")
    assert raw.put("fleet", "later", text(schema=2), "")
    assert raw.put("fleet", "broken", "{", "")

    found = table.rows()

    assert names == [row.workload for row in found.read]
    assert (("broken",), ("later",)) == (found.damaged, found.newer)
    assert Stored(None, text(schema=2), newer=True) == table.row("later")


@pytest.mark.parametrize("entry", [{}, {"entry": {"N": "1"}}])
def test_an_item_without_text_is_replaced(dynamodb: Any, entry: dict[str, Any]) -> None:
    table = FleetTable(DynamoDbFleet(dynamodb, "ledger"))
    assert table.put(Row("w"), "")
    (item,) = dynamodb.scan(TableName="ledger")["Items"]
    del item["entry"]
    dynamodb.put_item(TableName="ledger", Item={**item, **entry})

    assert ("w",) == table.rows().damaged
    assert table.put(Row("w"), table.row("w").version)


def test_rows_lie_in_all_partitions_by_the_first_digit_of_their_names_digest() -> None:
    dynamodb = Asked({"Item": {"entry": {"S": "{}"}}, "Items": [{"sk": {"S": "w"}}]})
    raw = DynamoDbFleet(dynamodb, "t")

    assert ("{}", 16 * [("w", "")]) == (raw.item("fleet", "w"), raw.items("fleet"))
    (asked, *queries) = dynamodb.requests
    # sha256("w") begins with 50e721e4.
    assert asked == ("get_item", {
        "TableName": "t", "ConsistentRead": True,
        "Key": {"pk": {"S": "fleet#5"}, "sk": {"S": "w"}},
    })  # fmt: skip
    assert sorted(map(str, queries)) == sorted(str(("query", {
        "TableName": "t", "ProjectionExpression": "sk, entry",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"fleet#{shard}"}},
    })) for shard in "0123456789abcdef")  # fmt: skip
