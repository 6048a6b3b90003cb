"""What a verification removes of the account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tools.verify_aws.account import Account

TRUST = '{"Version": "2012-10-17", "Statement": []}'
POLICY = (
    '{"Version": "2012-10-17", '
    '"Statement": [{"Effect": "Deny", "Action": "s3:PutObject", "Resource": "*"}]}'
)


@pytest.fixture
def client() -> Iterator[Callable[[str], Any]]:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    with mock_aws():
        yield lambda service: boto3.client(service, region_name="us-east-1", **keys)


def test_a_role_is_deleted_with_what_is_attached(client: Callable[[str], Any]) -> None:
    iam, account = client("iam"), Account(client, poll_seconds=0)
    policy = iam.create_policy(PolicyName="jobs", PolicyDocument=POLICY)["Policy"]["Arn"]
    for name in ("mine", "another"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
        iam.attach_role_policy(RoleName=name, PolicyArn=policy)

    assert account.delete_role("mine")
    assert account.delete_role("mine")  # nothing is left to delete
    assert ["another"] == [role["RoleName"] for role in iam.list_roles()["Roles"]]


def test_a_role_that_may_not_be_read_is_no_deleted_one() -> None:
    class Refusing:
        def list_attached_role_policies(self, RoleName: str) -> None:  # noqa: N803
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "ListAttachedRolePolicies")

    with pytest.raises(ClientError):
        Account(lambda _: Refusing(), poll_seconds=0).delete_role("mine")
