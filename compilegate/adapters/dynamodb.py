"""The ledger and the locks, in one DynamoDB table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code
from compilegate.domain import ledger_keys
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.problem import lease_lost

CONDITION_FAILED = "ConditionalCheckFailedException"


class DynamoDbLedger:
    """Append-only entries under ``workload#{name}``."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the entry, or return the one that is already there."""
        key = {"pk": {"S": f"workload#{workload}"}, "sk": {"S": sort_key}}
        body = {"entry": {"S": json.dumps(entry, sort_keys=True)}, "kind": {"S": entry["kind"]}}
        if _condition_held(
            self._dynamodb.put_item,
            TableName=self._table,
            Item={**key, **body},
            ConditionExpression="attribute_not_exists(pk)",
        ):
            return entry
        response = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        existing: Mapping[str, Any] = json.loads(response["Item"]["entry"]["S"])
        return existing

    def entries(self, workload: str, prefix: str = "") -> Sequence[Mapping[str, Any]]:
        """A workload's entries in the order of their sort keys, those that begin with ``prefix``.

        Pages are read one after the other, each as it is at that time: what is appended in the
        order of the keys never shows a gap.
        """
        condition, values = "pk = :pk", {":pk": {"S": f"workload#{workload}"}}
        if prefix:
            condition, values = f"{condition} AND begins_with(sk, :sk)", {
                **values, ":sk": {"S": prefix},
            }  # fmt: skip
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ConsistentRead=True,
        )
        return [json.loads(item["entry"]["S"]) for page in pages for item in page["Items"]]


class DynamoDbLocks:
    """One lease per workload under ``lock#{name}``; an expired lease is free."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def acquire(self, workload: str, owner: str, *, now: int, expires_at: int) -> None:
        """Take the lease (epoch seconds); raises WorkloadLockedError naming the holder."""
        if not _condition_held(
            self._dynamodb.put_item,
            TableName=self._table,
            Item=_lease(workload, owner, expires_at),
            ConditionExpression="attribute_not_exists(pk) OR expires_at < :now OR #o = :owner",
            ExpressionAttributeNames={"#o": "owner"},
            ExpressionAttributeValues={":now": {"N": str(now)}, ":owner": {"S": owner}},
        ):
            raise WorkloadLockedError(
                f"{workload} is already being evaluated by "
                f"{self.holder(workload) or 'an execution that just ended'}; "
                f"wait for it to end, or stop it: compilegate unlock {workload} --force"
            )

    def extend(self, workload: str, owner: str, *, expires_at: int) -> None:
        """Let the lease last longer; raises WorkloadLockedError where ``owner`` has lost it."""
        if not _condition_held(
            self._dynamodb.put_item,
            TableName=self._table,
            Item=_lease(workload, owner, expires_at),
            **_held_by(owner),
        ):
            raise lease_lost(workload, owner)

    def release(self, workload: str, owner: str) -> None:
        """Give the lease back if ``owner`` still holds it."""
        _condition_held(
            self._dynamodb.delete_item,
            TableName=self._table,
            Key=_lock_key(workload),
            **_held_by(owner),
        )

    def holder(self, workload: str) -> str | None:
        """The holder of the lease, expired or not; None where there is no lease."""
        response = self._dynamodb.get_item(
            TableName=self._table, Key=_lock_key(workload), ConsistentRead=True
        )
        owner: str | None = response.get("Item", {}).get("owner", {}).get("S")
        return owner


def _condition_held(call: Callable[..., Any], **request: Any) -> bool:
    """Whether the table took a conditional write."""
    try:
        call(**request)
    except ClientError as error:
        if error_code(error) != CONDITION_FAILED:
            raise
        return False
    return True


def _lease(workload: str, owner: str, expires_at: int) -> dict[str, Any]:
    own = {"owner": {"S": owner}, "expires_at": {"N": str(expires_at)}}
    return {**_lock_key(workload), **own}


def _held_by(owner: str) -> dict[str, Any]:
    return {
        "ConditionExpression": "#o = :owner",
        "ExpressionAttributeNames": {"#o": "owner"},
        "ExpressionAttributeValues": {":owner": {"S": owner}},
    }


def _lock_key(workload: str) -> dict[str, Any]:
    return {"pk": {"S": f"lock#{workload}"}, "sk": {"S": "lock"}}


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
