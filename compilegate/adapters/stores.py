"""Where data lives on AWS: S3, DynamoDB, Parameter Store; the topic; the clients of all."""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import IO, Any, BinaryIO
from urllib.parse import urlparse

from botocore.exceptions import ClientError

from compilegate.domain.claims import Notification
from compilegate.domain.errors import (
    NotFoundError,
    OverwrittenEvidenceError,
    WorkloadLockedError,
    lock_lost,
)
from compilegate.ports import Lock

# boto3 clients, each made when it is first called: a function makes only those that it uses.

# For figures that are shown only if they can be read quickly.
HASTY = {"connect_timeout": 3, "read_timeout": 5, "retries": {"total_max_attempts": 2}}
# A call that stalls is tried again within the shortest function's minute; botocore would wait
# for it a minute each to connect and to read, and the function be gone.
PATIENT = {
    "connect_timeout": 5, "read_timeout": 20, "retries": {"mode": "standard", "max_attempts": 5},
}  # fmt: skip

# Calls that threads may make at once without a connection of their own each time.
CONNECTIONS = 32
_MAKING = threading.Lock()  # boto3's default session is not safe for threads


class _Client:
    """A boto3 client, made at its first call of a copy of ``settings``: botocore writes into it."""

    def __init__(self, service: str, region: str | None, settings: dict[str, Any]) -> None:
        self._service, self._region, self._settings = service, region, settings
        self._client: Any = None

    def __getattr__(self, name: str) -> Any:
        with _MAKING:
            if self._client is None:
                import boto3  # noqa: PLC0415 - half of a cold start; only paid when AWS is called
                from botocore.config import Config  # noqa: PLC0415 - as above

                config = Config(**copy.deepcopy(self._settings), max_pool_connections=CONNECTIONS)
                self._client = boto3.client(self._service, region_name=self._region, config=config)
        return getattr(self._client, name)


@cache
def client(service: str, region: str | None = None, *, hasty: bool = False) -> Any:
    """One client per service, region and process; without a region the environment's.

    A ``hasty`` one gives up within seconds.
    """
    return _Client(service, region, HASTY if hasty else PATIENT)


def error_code(error: Exception) -> str:
    """The AWS error code of a botocore ClientError, empty for any other error."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def unless(codes: Collection[str], call: Callable[..., Any], **request: Any) -> Any:
    """What a call of AWS answers, never empty; None where it refuses with one of these codes."""
    try:
        return call(**request)
    except ClientError as error:
        if error_code(error) not in codes:
            raise
        return None


def listed(client: Any, operation: str, key: str, **request: Any) -> Iterator[Any]:
    """What an operation lists under ``key``, over all of its pages."""
    for page in client.get_paginator(operation).paginate(**request):
        yield from page.get(key, ())


# The data bucket.

NO_KEY = ("NoSuchKey", "404")
ABSENT = (*NO_KEY, "NoSuchBucket", "NotFound", "AccessDenied", "403")


@dataclass(frozen=True)
class Fetched:
    """An object that may be larger than memory: ``size`` in bytes, ``stream`` to be read once.

    ``identity`` says which object was read, as a run's record keeps it: S3's ``output_etag``, and
    ``output_version`` where its bucket keeps versions.
    """

    size: int
    stream: IO[bytes]
    identity: Mapping[str, str] = field(default_factory=dict)


class S3Store:
    """ObjectStore on one bucket."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self._s3 = s3
        self.bucket = bucket

    def get(self, key: str) -> bytes:
        answer = unless(NO_KEY, self._s3.get_object, Bucket=self.bucket, Key=key)
        if not answer:
            raise NotFoundError(f"s3://{self.bucket}/{key} does not exist")
        body: bytes = answer["Body"].read()
        return body

    def put(self, key: str, body: bytes, content_type: str = "application/json") -> None:
        self._s3.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=content_type)

    def fetch(self, uri: str) -> Fetched:
        """The object at an s3:// URI in any bucket; raises NotFoundError.

        An object that may not be read counts as missing. Raises OverwrittenEvidenceError for one
        of the data bucket that was written more than once; versions of other buckets are not read.
        """
        parts = urlparse(uri)
        place = {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
        if parts.netloc == self.bucket:
            # This version and no other, should somebody write the next one meanwhile.
            place["VersionId"] = self._only_version(place["Key"])
        answer = unless(ABSENT, self._s3.get_object, **place)
        if not answer:
            raise NotFoundError(f"{uri} does not exist or may not be read")
        named = {"output_etag": "ETag", "output_version": "VersionId"}
        identity = {name: answer[key] for name, key in named.items() if answer.get(key)}
        return Fetched(int(answer["ContentLength"]), answer["Body"], identity)

    def _only_version(self, key: str) -> str:
        """The version of an object that was written once.

        The first page has it: S3 lists keys in order, and those that go on after this one later.
        """
        page = self._s3.list_object_versions(Bucket=self.bucket, Prefix=key)
        written = [
            str(one["VersionId"])
            for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
            if one["Key"] == key
        ]
        if not written:
            raise NotFoundError(f"s3://{self.bucket}/{key} does not exist")
        version, *others = written
        if others:
            raise OverwrittenEvidenceError(
                f"s3://{self.bucket}/{key} was written {len(written)} times, and a job leaves its "
                f"output once: versions {', '.join(written)}"
            )
        return version

    def put_stream(self, key: str, stream: BinaryIO, content_type: str) -> None:
        """A large file in parts, so that it need not fit into memory.

        In this thread, because callers with many files have threads of their own.
        """
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - Lambdas never need it

        self._s3.upload_fileobj(
            stream, self.bucket, key, ExtraArgs={"ContentType": content_type},
            Config=TransferConfig(use_threads=False),
        )  # fmt: skip

    def exists(self, uri: str) -> bool:
        parts = urlparse(uri)
        place = {"Bucket": parts.netloc, "Prefix": parts.path.lstrip("/")}
        answer = unless(ABSENT, self._s3.list_objects_v2, **place, MaxKeys=1) or {}
        return bool(answer.get("Contents"))

    def has(self, key: str) -> bool:
        """What may not be looked at counts as absent, so that it is written again."""
        return bool(unless(ABSENT, self._s3.head_object, Bucket=self.bucket, Key=key))

    def folders(self, prefix: str) -> Iterator[str]:
        place = {"Bucket": self.bucket, "Prefix": prefix, "Delimiter": "/"}
        for entry in listed(self._s3, "list_objects_v2", "CommonPrefixes", **place):
            yield entry["Prefix"].removeprefix(prefix).rstrip("/")

    def keys(self, prefix: str) -> Iterator[str]:
        place = {"Bucket": self.bucket, "Prefix": prefix}
        for entry in listed(self._s3, "list_objects_v2", "Contents", **place):
            yield entry["Key"]


# The ledger and the locks, in one DynamoDB table.

WORKLOAD, LOCK = "workload#", "lock#"
CONDITION_FAILED = ("ConditionalCheckFailedException",)
BATCH = 100  # items of one BatchGetItem
FREE = "attribute_not_exists(pk) OR expires_at < :now OR "


class DynamoDbTable:
    """RawLedger and Locks in one table.

    Entries lie under ``workload#{name}``, locks under ``lock#{name}``; an expired lock is free.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        key = {"pk": {"S": f"{WORKLOAD}{workload}"}, "sk": {"S": sort_key}}
        body = {"entry": {"S": json.dumps(entry, sort_keys=True)}, "kind": {"S": entry["kind"]}}
        written = unless(
            CONDITION_FAILED,
            self._dynamodb.put_item,
            TableName=self._table,
            Item={**key, **body},
            ConditionExpression="attribute_not_exists(pk)",
        )
        if written:
            return entry
        response = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        existing: Mapping[str, Any] = json.loads(response["Item"]["entry"]["S"])
        return existing

    def entries(
        self, workload: str, prefix: str = "", last: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Pages are read one after the other, each as it is at that time.

        What is appended in the order of the keys never shows a gap.
        """
        condition, values = "pk = :pk", {":pk": {"S": f"{WORKLOAD}{workload}"}}
        if last is not None:
            condition += " AND sk BETWEEN :sk AND :last"
            values |= {":sk": {"S": prefix}, ":last": {"S": last}}
        elif prefix:
            condition += " AND begins_with(sk, :sk)"
            values[":sk"] = {"S": prefix}
        items = listed(
            self._dynamodb, "query", "Items", TableName=self._table, ConsistentRead=True,
            KeyConditionExpression=condition, ExpressionAttributeValues=values,
        )  # fmt: skip
        return [json.loads(item["entry"]["S"]) for item in items]

    def acquire(self, workload: str, owner: str, *, now: int, expires_at: int) -> None:
        put, lock = self._dynamodb.put_item, _lock(workload, owner, expires_at)
        if not self._write(put, owner, FREE, {":now": {"N": str(now)}}, Item=lock):
            raise WorkloadLockedError(
                f"{workload} is already being evaluated by "
                f"{self.holder(workload) or 'an execution that just ended'}; "
                f"wait for it to end, or stop it: compilegate unlock {workload} --force"
            )

    def extend(self, workload: str, owner: str, *, expires_at: int) -> None:
        lock = _lock(workload, owner, expires_at)
        if not self._write(self._dynamodb.put_item, owner, Item=lock):
            raise lock_lost(workload, owner)

    def release(self, workload: str, owner: str) -> None:
        self._write(self._dynamodb.delete_item, owner, Key=_lock_key(workload))

    def holder(self, workload: str) -> str | None:
        response = self._dynamodb.get_item(
            TableName=self._table, Key=_lock_key(workload), ConsistentRead=True
        )
        owner: str | None = response.get("Item", {}).get("owner", {}).get("S")
        return owner

    def locks_of(self, workloads: Collection[str]) -> Sequence[Lock]:
        waiting, locks = [_lock_key(workload) for workload in workloads], list[Lock]()
        while waiting:
            asked, waiting = waiting[:BATCH], waiting[BATCH:]
            request = {self._table: {"Keys": asked, "ConsistentRead": True}}
            answer = self._dynamodb.batch_get_item(RequestItems=request)
            for item in answer["Responses"].get(self._table, ()):
                name, until = item["pk"]["S"].removeprefix(LOCK), int(item["expires_at"]["N"])
                locks.append(Lock(name, item["owner"]["S"], until))
            # What did not fit into the answer, or was throttled, is asked for again.
            waiting += answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ())
        return locks

    def _write(
        self, call: Callable[..., Any], owner: str, free: str = "",
        values: Mapping[str, Any] | None = None, **request: Any,
    ) -> bool:  # fmt: skip
        """Whether the table took the write: the lock is the owner's, or ``free``."""
        answer = unless(
            CONDITION_FAILED,
            call,
            TableName=self._table,
            ConditionExpression=f"{free}#o = :owner",
            ExpressionAttributeNames={"#o": "owner"},
            ExpressionAttributeValues={":owner": {"S": owner}, **(values or {})},
            **request,
        )
        return bool(answer)


def _lock(workload: str, owner: str, expires_at: int) -> dict[str, Any]:
    own = {"owner": {"S": owner}, "expires_at": {"N": str(expires_at)}}
    return {**_lock_key(workload), **own}


def _lock_key(workload: str) -> dict[str, Any]:
    return {"pk": {"S": f"{LOCK}{workload}"}, "sk": {"S": "lock"}}


class SsmFlags:
    """FlagStore on Parameter Store, which keeps every version."""

    def __init__(self, ssm: Any) -> None:
        self._ssm = ssm

    def read(self, name: str) -> str | None:
        answer = unless(("ParameterNotFound",), self._ssm.get_parameter, Name=name)
        return str(answer["Parameter"]["Value"]) if answer else None

    def write(self, name: str, value: str) -> None:
        self._ssm.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


class SnsTopic:
    """Topic on SNS; each kind of subscriber gets its own words."""

    def __init__(self, sns: Any, arn: str) -> None:
        self._sns, self._arn = sns, arn

    def publish(self, notification: Notification) -> None:
        self._sns.publish(
            TopicArn=self._arn,
            Subject=notification.line,
            Message=notification.envelope(),
            MessageStructure="json",
            MessageAttributes=notification.attributes(),
        )


# The items of the fleet in DynamoDB: one per kind and workload, in the ledger's table.
#
# They lie under ``KIND#H``, H the first hex digit of the SHA-256 of the workload's name: 16
# partitions, so that writes are spread and all can be read at once without a scan.

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
