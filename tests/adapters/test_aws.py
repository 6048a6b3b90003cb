"""The adapters against moto's AWS: what they promise the use cases."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from compilegate.adapters import stores
from compilegate.adapters.stores import (
    CONNECTIONS,
    DynamoDbTable,
    Fetched,
    S3Store,
    SnsTopic,
    SsmFlags,
)
from compilegate.domain.claims import Notification
from compilegate.domain.errors import NotFoundError, WorkloadLockedError
from compilegate.ports import Lock
from compilegate.usecases.records import AT_ONCE
from tests.adapters.conftest import REGION, Asked


def test_an_entry_is_written_once_and_entries_come_back_in_order_of_one_workload(
    dynamodb: Any,
) -> None:
    table = DynamoDbTable(dynamodb, "ledger")
    for workload, key in (
        ("bert", "flag#00000002"), ("bert", "flag#00000001"), ("bert", "flags#1"), ("gpt", "run#1"),
        ("bert", "run#1"),
    ):  # fmt: skip
        written = table.put_once(workload, key, {"kind": "any", "key": key})
        again = table.put_once(workload, key, {"kind": "any", "key": "other"})
        assert {"kind": "any", "key": key} == written == again
    table.acquire("bert", "arn:execution", now=1, expires_at=100)

    flags = ["flag#00000001", "flag#00000002"]
    assert flags == [entry["key"] for entry in table.entries("bert", "flag#")]
    assert [*flags, "flags#1", "run#1"] == [entry["key"] for entry in table.entries("bert")]
    between = table.entries("bert", "flag#00000002", "flags#1")
    assert [flags[1], "flags#1"] == [entry["key"] for entry in between]
    assert [Lock("bert", "arn:execution", 100)] == table.locks_of(["ads", "bert"])


def test_a_lock_is_its_holders_until_it_expires_or_is_released(dynamodb: Any) -> None:
    locks = DynamoDbTable(dynamodb, "ledger")
    assert locks.holder("bert") is None
    locks.acquire("bert", "first", now=100, expires_at=200)
    locks.acquire("bert", "first", now=110, expires_at=210)
    with pytest.raises(WorkloadLockedError, match="already being evaluated by first"):
        locks.acquire("bert", "second", now=150, expires_at=250)
    locks.extend("bert", "first", expires_at=400)
    with pytest.raises(WorkloadLockedError, match="second"):
        locks.extend("bert", "second", expires_at=500)
    locks.release("bert", "second")
    with pytest.raises(WorkloadLockedError):
        locks.acquire("bert", "second", now=300, expires_at=500)
    assert "first" == locks.holder("bert")

    held = [Lock("bert", "first", 400)]
    assert held == locks.locks_of(["bert", *(f"w{one}" for one in range(250))])
    locks.release("bert", "first")
    assert locks.holder("bert") is None
    assert [] == locks.locks_of(["bert"]) == locks.locks_of([])
    with pytest.raises(WorkloadLockedError, match="no longer"):
        locks.extend("bert", "first", expires_at=500)
    locks.acquire("bert", "first", now=300, expires_at=400)
    locks.acquire("bert", "second", now=401, expires_at=500)
    with pytest.raises(WorkloadLockedError, match="second"):
        locks.acquire("bert", "first", now=402, expires_at=600)


def test_locks_that_were_not_answered_are_asked_for_again() -> None:
    """BatchGetItem takes 100 keys, and may leave some of them for another call."""
    asked: list[list[str]] = []

    class Throttled:
        def batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
            request = RequestItems["ledger"]
            assert request["ConsistentRead"]
            keys = request["Keys"]
            asked.append([key["pk"]["S"] for key in keys])
            items = [
                {**key, "owner": {"S": f"by {key['pk']['S']}"}, "expires_at": {"N": "9"}}
                for key in keys[:60]
            ]
            left = {"ledger": {"Keys": keys[60:]}} if keys[60:] else {}
            return {"Responses": {"ledger": items}, "UnprocessedKeys": left}

    names = [f"w{one:03d}" for one in range(230)]
    held = DynamoDbTable(Throttled(), "ledger").locks_of(names)

    assert {Lock(name, f"by lock#{name}", 9) for name in names} == {*held}
    assert 100 == max(map(len, asked))


def test_an_absent_object_is_not_found_and_a_prefix_exists(aws: None) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="data")
    store = S3Store(s3, "data")
    store.put("inputs/train/a.jsonl", b"{}")

    assert b"{}" == store.get("inputs/train/a.jsonl")
    assert store.exists("s3://data/inputs/train/")
    assert (True, False) == (store.has("inputs/train/a.jsonl"), store.has("inputs/train/a"))
    assert store.exists("s3://data/inputs/train/a")  # a prefix, which is another question
    assert not store.exists("s3://data/inputs/validation/")
    assert not store.exists("s3://no-such-bucket/inputs/")
    with pytest.raises(NotFoundError, match="s3://data/none does not exist"):
        store.get("none")


def test_an_absent_flag_reads_as_none_and_is_overwritten(aws: None) -> None:
    ssm = boto3.client("ssm", region_name=REGION)
    flags = SsmFlags(ssm)

    assert flags.read("/compilegate/x") is None

    flags.write("/compilegate/x", "1")
    flags.write("/compilegate/x", "2")

    assert "2" == flags.read("/compilegate/x")
    assert "String" == ssm.get_parameter(Name="/compilegate/x")["Parameter"]["Type"]


def test_folders_are_the_names_below_a_prefix_over_all_pages(aws: None) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="data")
    store = S3Store(s3, "data")
    names = [f"w{number:04d}" for number in range(1001)]  # S3 lists a thousand at a time
    for name in names:  # past the API, which takes two thousandths of a second for each
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(
            "data", f"workloads/{name}/registration.json", b"{}"
        )
    store.put("workloads/w0000/specs/d.json", b"{}")
    store.put("production/x/y.json", b"{}")

    assert names == list(store.folders("workloads/"))
    assert [] == list(store.folders("nothing/")) == list(store.keys("nothing/"))
    assert ["production/x/y.json"] == list(store.keys("production/"))


def test_the_topic_gives_each_kind_of_subscriber_its_own_words_and_owners_their_own(
    aws: None,
) -> None:
    sns, sqs = (boto3.client(service, region_name=REGION) for service in ("sns", "sqs"))
    arn = sns.create_topic(Name="decisions")["TopicArn"]
    url = sqs.create_queue(QueueName="mine")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    mine = {"FilterPolicy": json.dumps({"owner": ["ml"]})}
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue["QueueArn"], Attributes=mine)
    topic = SnsTopic(sns, arn)
    for owner in ("ml", "ads", None):
        topic.publish(Notification("digest", "prod", "a week", "Nothing ran.", owner=owner))

    (message,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    received = json.loads(message["Body"])
    body = json.loads(received["Message"])
    assert ("a week", "ml", "Nothing ran.") == (received["Subject"], body["owner"], body["text"])


def test_a_file_larger_than_a_part_arrives_whole(aws: None, tmp_path: Path) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="data")
    body = bytes(range(256)) * (40 * 1024)  # 10 MiB; parts are 8
    file = tmp_path / "rows.bin"
    file.write_bytes(body)
    store = S3Store(s3, "data")

    with file.open("rb") as stream:
        store.put_stream("inputs/rows.bin", stream, "application/octet-stream")

    assert body == store.get("inputs/rows.bin")
    stored = s3.head_object(Bucket="data", Key="inputs/rows.bin")
    assert "application/octet-stream" == stored["ContentType"]
    assert stored["ETag"].endswith('-2"')  # two parts: it was never in memory whole


class Refusing:
    """Answers each call of S3's with this error."""

    def __init__(self, code: str) -> None:
        self.error = ClientError({"Error": {"Code": code}}, "GetObject")

    def __getattr__(self, _: str) -> Any:
        def refuse(**__: Any) -> Any:
            raise self.error

        return refuse


@pytest.mark.parametrize(
    "code", ["NoSuchKey", "NoSuchBucket", "404", "NotFound", "AccessDenied", "403"]
)
def test_what_may_not_be_read_counts_as_missing(code: str) -> None:
    store, uri = S3Store(Refusing(code), "data"), "s3://teams/nightly/output.tar.gz"

    with pytest.raises(NotFoundError, match="may not be read"):
        store.fetch(uri)
    assert (False, False) == (store.exists(uri), store.has("a"))


def test_any_other_error_of_the_bucket_is_raised() -> None:
    store, uri = S3Store(Refusing("SlowDown"), "data"), "s3://teams/nightly/output.tar.gz"

    for ask in (lambda: store.fetch(uri), lambda: store.exists(uri), lambda: store.has("a")):
        with pytest.raises(ClientError, match="SlowDown"):
            ask()


def test_as_many_connections_are_kept_as_requests_are_under_way() -> None:
    assert 32 == AT_ONCE == CONNECTIONS
    assert 4 == stores.AT_ONCE


def test_the_table_is_read_as_it_is_and_an_entry_is_written_in_one_form() -> None:
    entry = {"kind": "k", "a": 1}
    answer = {"Item": {"entry": {"S": '{"b": 2}'}}, "Items": []}
    dynamodb = Asked(answer, put_item="ConditionalCheckFailedException")
    table = DynamoDbTable(dynamodb, "t")

    assert {"b": 2} == table.put_once("w", "s", entry)
    table.entries("w", "flag#")
    table.entries("w", "run#1", "run#2")
    table.holder("w")

    consistent, key = {"TableName": "t", "ConsistentRead": True}, {"S": "workload#w"}
    own = {"pk": key, "sk": {"S": "s"}}
    assert [
        ("put_item", {
            "TableName": "t", "ConditionExpression": "attribute_not_exists(pk)",
            "Item": {**own, "entry": {"S": '{"a": 1, "kind": "k"}'}, "kind": {"S": "k"}},
        }),
        ("get_item", {**consistent, "Key": own}),
        ("query", {
            **consistent, "KeyConditionExpression": "pk = :pk AND begins_with(sk, :sk)",
            "ExpressionAttributeValues": {":pk": key, ":sk": {"S": "flag#"}},
        }),
        ("query", {
            **consistent, "KeyConditionExpression": "pk = :pk AND sk BETWEEN :sk AND :last",
            "ExpressionAttributeValues": {
                ":pk": key, ":sk": {"S": "run#1"}, ":last": {"S": "run#2"},
            },
        }),
        ("get_item", {**consistent, "Key": {"pk": {"S": "lock#w"}, "sk": {"S": "lock"}}}),
    ] == dynamodb.requests  # fmt: skip


def test_the_bucket_is_asked_for_what_is_needed_and_no_more() -> None:
    version = {"Key": "k", "VersionId": "v"}
    s3 = Asked({"Versions": [version], "ContentLength": "3", "Body": io.BytesIO(b"abc")})
    store, stream = S3Store(s3, "data"), io.BytesIO(b"x")

    store.put("k", b"x", "text/html")
    store.exists("s3://teams/runs/")
    fetched = store.fetch("s3://data/k")
    store.put_stream("k", stream, "text/csv")

    *requests, (operation, *place, upload) = s3.requests
    assert [
        ("put_object", {"Bucket": "data", "Key": "k", "Body": b"x", "ContentType": "text/html"}),
        ("list_objects_v2", {"Bucket": "teams", "Prefix": "runs/", "MaxKeys": 1}),
        ("list_object_versions", {"Bucket": "data", "Prefix": "k"}),
        ("get_object", {"Bucket": "data", "Key": "k", "VersionId": "v"}),
    ] == requests
    assert (3, b"abc", {}) == (fetched.size, fetched.stream.read(), fetched.identity)
    assert ("upload_fileobj", [stream, "data", "k"]) == (operation, place)
    assert ({"ContentType": "text/csv"}, False) == (
        upload["ExtraArgs"], upload["Config"].use_threads,
    )  # fmt: skip
    assert {} == Fetched(3, stream).identity


@pytest.mark.parametrize(
    ("hasty", "connect", "read", "retries"),
    [
        ({}, 5, 20, {"mode": "standard", "max_attempts": 5}),
        ({"hasty": True}, 3, 5, {"total_max_attempts": 2}),
    ],
)
def test_a_client_waits_as_long_as_it_may(
    hasty: dict[str, bool], connect: int, read: int, retries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(boto3, "client", lambda *of, **how: made.append((of, how)) or Asked({}))
    stores.client.cache_clear()
    one = stores.client("s3", "eu-west-1", **hasty)
    one.list_buckets()
    one.list_buckets()
    stores.client.cache_clear()

    ((service,), how) = made[0]
    assert (1, "s3", "eu-west-1") == (len(made), service, how["region_name"])
    config = how["config"]
    assert (connect, read, CONNECTIONS) == (
        config.connect_timeout, config.read_timeout, config.max_pool_connections,
    )  # fmt: skip
    assert retries.items() <= config.retries.items()
    # Botocore writes into what it is given.
    assert config.retries is not (stores.HASTY if hasty else stores.PATIENT)["retries"]
    assert "" == stores.error_code(ValueError("no answer"))
