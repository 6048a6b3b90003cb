"""One role for each workload, made under the deployment's policy and no other."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.sagemaker import ForeignRoleError, IamJobRoles
from compilegate.ports import Settings

ACCOUNT = "123456789012"
ROLES = f"arn:aws:iam::{ACCOUNT}:role/compilegate/prod-us-east-1-"
NAME = "prod-us-east-1-bert-docs"
STATEMENT = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "*"}
POLICY = json.dumps({"Version": "2012-10-17", "Statement": [STATEMENT]})


@pytest.fixture
def iam(aws: None) -> Any:
    return boto3.client("iam")


def policy(iam: Any, name: str = "jobs") -> str:
    return str(iam.create_policy(PolicyName=name, PolicyDocument=POLICY)["Policy"]["Arn"])


def roles(iam: Any, arn: str) -> IamJobRoles:
    return IamJobRoles(iam, Settings("prod", "us-east-1", ROLES, job_policy=arn))


def assert_bounded(iam: Any, arn: str) -> None:
    role = iam.get_role(RoleName=NAME)["Role"]
    attached = iam.list_attached_role_policies(RoleName=NAME)["AttachedPolicies"]

    assert f"{ROLES}bert-docs" == role["Arn"]
    assert arn == role["PermissionsBoundary"]["PermissionsBoundaryArn"]
    assert arn in [one["PolicyArn"] for one in attached]


def test_roles_that_are_provided_are_left_alone() -> None:
    provided = f"arn:aws:iam::{ACCOUNT}:role/ml/train-{{workload}}"
    IamJobRoles(None, Settings("prod", "us-east-1", provided)).ensure("bert-docs")  # no call


class Ago(int):
    """A time so many days before any other."""

    def __rsub__(self, now: datetime) -> timedelta:
        return timedelta(days=self)


class Full:
    """IAM of an account that refuses another role until one is deleted; ``idle`` are days,
    None of one that another execution deletes after it was listed.
    """

    def __init__(self, iam: Any, idle: dict[str, int | None], code: str = "LimitExceeded") -> None:
        self._iam, self._idle, self.code = iam, idle, code
        self.asked, self.deleted = list[str](), list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iam, name)

    def create_role(self, **request: Any) -> Any:
        self.asked.append(request["RoleName"])
        if not self.deleted:
            raise ClientError({"Error": {"Code": self.code, "Message": ""}}, "CreateRole")
        return self._iam.create_role(**request)

    def get_role(self, RoleName: str) -> Any:  # noqa: N803 - as boto3 has it
        answer = self._iam.get_role(RoleName=RoleName)
        days = self._idle.get(RoleName.removeprefix("prod-us-east-1-"), 0)
        if days is None:
            raise ClientError({"Error": {"Code": "NoSuchEntity", "Message": ""}}, "GetRole")
        answer["Role"]["RoleLastUsed"] = {"LastUsedDate": Ago(days)}
        return answer

    def delete_role(self, **request: Any) -> None:
        self._iam.delete_role(**request)
        self.deleted.append(request["RoleName"])


@pytest.mark.parametrize(
    ("code", "idle", "deleted"),
    [
        ("LimitExceeded", {"a": 30, "b": 31, "c": 29}, ["prod-us-east-1-b"]),
        ("LimitExceeded", {"a": 2, "b": 30}, []),
        ("LimitExceeded", {"a": None}, []),
        ("AccessDenied", {"a": 31}, []),
    ],
)
def test_an_idle_role_makes_room_where_the_quota_is_used_up(
    iam: Any, code: str, idle: dict[str, int | None], deleted: list[str]
) -> None:
    arn = policy(iam)
    for workload in idle:
        roles(iam, arn).ensure(workload)
    foreign = [
        ("prod-us-east-1-x", "/", "prod"), ("prod-eu-west-1-x", "/compilegate/", "prod"),
        ("prod-us-east-1-0", "/compilegate/", "test"),  # of the deployment's form, another's
    ]  # fmt: skip
    for name, path, stage in foreign:
        tags = [{"Key": "compilegate:deployment", "Value": stage}]
        iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=POLICY, Tags=tags)
    full = Full(iam, {**idle, "x": 400, "prod-eu-west-1-x": 400, "0": 400}, code)
    if deleted:
        roles(full, arn).ensure("bert-docs")
        assert_bounded(iam, arn)
    else:
        with pytest.raises(ClientError, match=code):
            roles(full, arn).ensure("bert-docs")

    assert deleted == full.deleted
    assert 1 + len(deleted) == len(full.asked)


def refuse(**_: Any) -> None:
    raise AssertionError("not needed")


def test_a_role_is_for_one_workload_and_for_sagemaker_of_this_account(
    iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = policy(iam)
    monkeypatch.setattr(iam, "put_role_permissions_boundary", refuse)  # it is made with one
    roles(iam, arn).ensure("bert-docs")
    role = iam.get_role(RoleName=NAME)["Role"]

    assert_bounded(iam, arn)
    assert "Training jobs of bert-docs, Compilegate prod" == role["Description"]
    assert {"Key": "compilegate-workload", "Value": "bert-docs"} in role["Tags"]
    (trusted,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert {"Service": "sagemaker.amazonaws.com"} == trusted["Principal"]
    assert {"StringEquals": {"aws:SourceAccount": ACCOUNT}} == trusted["Condition"]


def test_the_role_of_a_removed_deployment_comes_under_the_next_ones_policy(iam: Any) -> None:
    roles(iam, policy(iam, "before")).ensure("bert-docs")
    arn = policy(iam, "after")
    roles(iam, arn).ensure("bert-docs")

    assert_bounded(iam, arn)


@pytest.mark.parametrize(
    ("path", "workload"), [("/", "bert-docs"), ("/compilegate/", "victim"), ("/compilegate/", None)]
)
def test_a_role_that_was_made_for_something_else_is_refused(
    iam: Any, path: str, workload: str | None
) -> None:
    arn = policy(iam)
    tags = [{"Key": "compilegate-workload", "Value": workload}] if workload else []
    iam.create_role(RoleName=NAME, Path=path, AssumeRolePolicyDocument=POLICY, Tags=tags)
    with pytest.raises(ForeignRoleError, match=NAME):
        roles(iam, arn).ensure("bert-docs")

    assert [] == iam.list_attached_role_policies(RoleName=NAME)["AttachedPolicies"]


def test_a_role_follows_the_deployments_path_prefix_boundary_and_tags(iam: Any) -> None:
    jobs, boundary = policy(iam), policy(iam, "boundary")
    names = f"arn:aws:iam::{ACCOUNT}:role/ml:role/team/x-prod-us-east-1-"
    settings = Settings(
        "prod", "us-east-1", names, job_policy=jobs, job_boundary=boundary,
        tags={"cost-centre": "1", "compilegate-workload": "victim", "Application": "risk"},
    )  # fmt: skip
    IamJobRoles(iam, settings).ensure("bert-docs")
    IamJobRoles(iam, settings).ensure("bert-docs")
    role = iam.get_role(RoleName="x-prod-us-east-1-bert-docs")["Role"]
    tags = {tag["Key"]: tag["Value"] for tag in role["Tags"]}
    attached = iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]

    assert f"{names}bert-docs" == role["Arn"]
    assert boundary == role["PermissionsBoundary"]["PermissionsBoundaryArn"]
    assert [jobs] == [one["PolicyArn"] for one in attached]
    # What separates workloads is not the deployment's to replace.
    assert ("1", "bert-docs") == (tags["cost-centre"], tags["compilegate-workload"])
    # IAM refuses two keys that differ by case alone.
    assert ["risk"] == [tags[name] for name in tags if name.lower() == "application"]


def test_it_is_made_once_and_completed_after_a_call_that_broke_off(
    iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = policy(iam)
    made = roles(iam, arn)
    made.ensure("bert-docs")
    monkeypatch.setattr(iam, "create_role", refuse)
    iam.detach_role_policy(RoleName=NAME, PolicyArn=arn)  # as if it had never got that far
    made.ensure("bert-docs")
    made.ensure("bert-docs")

    assert_bounded(iam, arn)
