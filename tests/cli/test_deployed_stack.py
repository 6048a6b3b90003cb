"""First contact with an account: no stack, one that failed, another release's, no region."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from compilegate.cli.common import connect
from compilegate.cli.common.connect import stack_outputs
from compilegate.domain.errors import (
    InvalidInputError,
    NotDeployedError,
)

REGION = "eu-west-1"


def cloudformation(
    *, outputs: dict[str, str] | None, status: str = "CREATE_COMPLETE", region: str = REGION
) -> Any:
    """A client that answers DescribeStacks once; None is a stack that is not there."""
    client = boto3.client(
        "cloudformation", region_name=region, aws_access_key_id="x", aws_secret_access_key="x"
    )
    stubber = Stubber(client)
    if outputs is None:
        stubber.add_client_error(
            "describe_stacks", "ValidationError", "Stack with id compilegate-beta does not exist"
        )
    else:
        items = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        stack = {
            "StackName": "compilegate-dev", "StackStatus": status,
            "CreationTime": datetime(2026, 1, 1, tzinfo=UTC), "Outputs": items,
        }  # fmt: skip
        stubber.add_response("describe_stacks", {"Stacks": [stack]})
    stubber.activate()
    return client


def test_a_stage_that_was_never_deployed_names_both_commands() -> None:
    with pytest.raises(NotDeployedError) as raised:
        stack_outputs(cloudformation(outputs=None, region="us-east-1"), "prod")

    message = str(raised.value)
    assert message.startswith("There is no stack compilegate-prod in us-east-1. Fix: deploy it")
    assert "`make deploy`" in message
    assert "`make bootstrap`" in message


def test_a_shell_that_looks_in_another_region_is_told_where_cdk_json_deploys() -> None:
    with pytest.raises(NotDeployedError) as raised:
        stack_outputs(cloudformation(outputs=None), "prod")

    assert "no stack compilegate-prod in eu-west-1" in str(raised.value)
    assert "cdk.json deploys compilegate-prod to us-east-1" in str(raised.value)


@pytest.mark.parametrize(
    ("status", "fix"),
    [
        ("REVIEW_IN_PROGRESS", "run `make deploy`"),
        ("CREATE_IN_PROGRESS", "wait until"),
        ("ROLLBACK_COMPLETE", "events"),
        ("DELETE_FAILED", "`make destroy`"),
    ],
)
def test_a_stack_without_working_resources_is_named_with_the_next_step(
    status: str, fix: str
) -> None:
    with pytest.raises(NotDeployedError) as raised:
        stack_outputs(cloudformation(outputs={}, status=status), "dev")

    assert f"({status})" in str(raised.value)
    assert fix in str(raised.value)


def test_a_stack_that_is_being_updated_can_be_used() -> None:
    outputs = {"DataBucket": "data"}

    assert outputs == stack_outputs(
        cloudformation(outputs=outputs, status="UPDATE_IN_PROGRESS"), "dev"
    )


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_a_region_that_is_none_is_refused_before_any_call(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "us-east1")

    with pytest.raises(InvalidInputError) as raised:
        connect.aws("prod")

    assert (variable, "us-east1") == (raised.value.field, raised.value.value)
    assert "us-east-1" in raised.value.fix
