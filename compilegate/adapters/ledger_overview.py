"""The whole ledger at a glance: which workloads it knows, and who holds a lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain import ledger_keys

WORKLOAD = "workload#"
LOCK = "lock#"


@dataclass(frozen=True)
class Lock:
    """A lease on a workload; ``expires_at`` in epoch seconds."""

    workload: str
    owner: str
    expires_at: int


class DynamoDbOverview:
    """Scans the ledger table; a table of decisions is small."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def workloads(self) -> Sequence[str]:
        """Names of every workload with an entry, sorted."""
        names = {key.removeprefix(WORKLOAD) for key in self._keys() if key.startswith(WORKLOAD)}
        return sorted(names - {ledger_keys.DEPLOYMENT})

    def locks(self) -> Sequence[Lock]:
        """Every lease that is held."""
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._table,
            ConsistentRead=True,
            FilterExpression="begins_with(pk, :lock)",
            ExpressionAttributeValues={":lock": {"S": LOCK}},
        )
        return [
            Lock(
                workload=item["pk"]["S"].removeprefix(LOCK),
                owner=item["owner"]["S"],
                expires_at=int(item["expires_at"]["N"]),
            )
            for page in pages
            for item in page["Items"]
        ]

    def _keys(self) -> Sequence[str]:
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._table, ProjectionExpression="pk"
        )
        return [item["pk"]["S"] for page in pages for item in page["Items"]]
