"""The items of the fleet in DynamoDB: one per kind and workload, in the ledger's table.

They lie under ``KIND#H``, H the first hex digit of the SHA-256 of the workload's name: 16
partitions, so that writes are spread and all can be read at once without a scan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compilegate.adapters.stores import CONDITION_FAILED, listed, unless

SHARDS = "0123456789abcdef"
AT_ONCE = 4  # each may answer a megabyte, of which parsing makes several
# What holds no text is replaced as if it were not there.
UNCHANGED = "attribute_not_exists(entry) OR NOT attribute_type(entry, :text) OR entry = :previous"


class DynamoDbFleet:
    """RawFleet in the ledger's table."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def items(self, kind: str) -> Sequence[tuple[str, str]]:
        """By 16 queries, not consistent: what was written a second ago may be missing."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            of_shards = pool.map(lambda shard: self._shard(f"{kind}#{shard}"), SHARDS)
            return [item for of_one in of_shards for item in of_one]

    def _shard(self, partition: str) -> list[tuple[str, str]]:
        items = listed(
            self._dynamodb, "query", "Items", TableName=self._table,
            ProjectionExpression="sk, entry",
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": partition}},
        )  # fmt: skip
        return [(item["sk"]["S"], _text(item)) for item in items]

    def item(self, kind: str, workload: str) -> str:
        response = self._dynamodb.get_item(
            TableName=self._table, Key=_key(kind, workload), ConsistentRead=True
        )
        return _text(response.get("Item", {}))

    def put(self, kind: str, workload: str, text: str, previous: str) -> bool:
        answer = unless(
            CONDITION_FAILED,
            self._dynamodb.put_item,
            TableName=self._table,
            Item={**_key(kind, workload), "entry": {"S": text}},
            ConditionExpression=UNCHANGED,
            ExpressionAttributeValues={":text": {"S": "S"}, ":previous": {"S": previous}},
        )
        return bool(answer)


def _key(kind: str, workload: str) -> dict[str, Any]:
    shard = hashlib.sha256(workload.encode()).hexdigest()[0]
    return {"pk": {"S": f"{kind}#{shard}"}, "sk": {"S": workload}}


def _text(item: dict[str, Any]) -> str:
    return str(item.get("entry", {}).get("S", ""))
