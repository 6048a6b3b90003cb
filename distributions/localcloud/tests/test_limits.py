"""The rates and quotas that AWS publishes: what is one too many, and what is then answered."""

import json

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from compilegate_localcloud.emulator.limits import (
    MOST_PARAMETERS,
    MOST_ROLES,
    PARAMETERS_USED_UP,
    ROLES_USED_UP,
    THROTTLED,
    Limits,
)
from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests.conftest import FAST, make_places


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.mark.parametrize(
    ("service", "operation", "at_once", "a_second"),
    [
        ("states", "DescribeExecution", 300, 15), ("states", "ListExecutions", 200, 5),
        ("sagemaker", "ListTrainingJobs", 2, 2), ("sagemaker", "Search", 5, 5),
        ("ssm", "GetParameter", 40, 40),
        ("ssm", "PutParameter", 3, 3),
    ],
)  # fmt: skip
def test_calls_beyond_a_rate_are_refused_until_time_has_passed(
    service, operation, at_once, a_second
):
    clock = Clock()
    limits = Limits(clock, lambda _: 0)

    def answered():
        calls = [limits.refusal(service, operation, b"{}") for _ in range(2 * at_once)]
        assert {*calls} <= {None, THROTTLED}
        return calls.count(None)

    assert at_once == answered()
    clock.seconds += 0.5 / a_second
    assert 0 == answered()
    clock.seconds += 1
    assert a_second == answered()
    clock.seconds += 3600
    assert at_once == answered()
    assert limits.refusal(service, "StartExecution", b"{}") is None


def test_reads_of_parameters_share_their_rate():
    limits = Limits(Clock(), lambda _: 0)
    names = ["GetParameter", "GetParameters"] * 30
    calls = [limits.refusal("ssm", name, b"{}") for name in names]

    assert 40 == calls.count(None)


@pytest.mark.parametrize(
    ("operation", "body", "used", "refusal"),
    [
        ("CreateRole", {}, MOST_ROLES - 1, None), ("CreateRole", {}, MOST_ROLES, ROLES_USED_UP),
        ("PutParameter", {}, MOST_PARAMETERS - 1, None),
        ("PutParameter", {}, MOST_PARAMETERS, PARAMETERS_USED_UP),
        ("PutParameter", {"Overwrite": True}, MOST_PARAMETERS, None),
    ],
)  # fmt: skip
def test_an_account_holds_so_many_roles_and_parameters(operation, body, used, refusal):
    kind = {"CreateRole": "roles", "PutParameter": "parameters"}[operation]
    limits = Limits(Clock(), {kind: used}.get)

    assert refusal == limits.refusal("any", operation, json.dumps(body).encode())


@pytest.mark.e2e
def test_the_cloud_refuses_what_is_too_many_and_pages_what_is_too_large(tmp_path):
    with LocalCloud(places=make_places(tmp_path)) as cloud:
        state = cloud.start(attached=True, hold_rates=True, extra_arguments=FAST)
        once = Config(proxies={}, inject_host_prefix=False, retries={"total_max_attempts": 1})
        sagemaker = state.session().client("sagemaker", endpoint_url=state.endpoint, config=once)
        sagemaker.list_training_jobs()  # the first may take so long that it is forgotten
        with pytest.raises(ClientError) as caught:
            for _ in range(20):
                sagemaker.list_training_jobs()
        assert "ThrottlingException" == caught.value.response["Error"]["Code"]
        dynamodb = state.client("dynamodb")
        keys = [("pk", "HASH"), ("sk", "RANGE")]
        dynamodb.create_table(
            TableName="table", BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": k, "AttributeType": "S"} for k, _ in keys],
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys],
        )  # fmt: skip
        for number in range(4):
            item = {"pk": "a", "sk": str(number), "entry": "x" * 390_000}
            dynamodb.put_item(TableName="table", Item={k: {"S": text} for k, text in item.items()})
        pages = list(dynamodb.get_paginator("query").paginate(
            TableName="table", KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "a"}},
        ))  # fmt: skip

        assert [2, 2] == [page["Count"] for page in pages]
