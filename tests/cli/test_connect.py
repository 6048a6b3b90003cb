"""Connecting to a stage, and what is read from AWS while a trial runs, against moto."""

import subprocess
import sys
import time
from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from compilegate.adapters import stores
from compilegate.cli.common import connect
from compilegate.cli.common.connect import stack_outputs
from compilegate.domain.claims import LOCAL_STAGE
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, NotDeployedError
from compilegate_localcloud import names
from compilegate_localcloud.api import RunState
from compilegate_localcloud.errors import CloudEndedError

REGION = "eu-west-1"
OUTPUTS = {
    "DataBucket": "data", "LedgerTable": "ledger", "JobRoles": "arn:aws:iam::1:role/t-",
    "EvaluateStateMachine": "arn:aws:states:eu-west-1:123456789012:stateMachine:evaluate",
    "TrainStateMachine": "arn:aws:states:eu-west-1:123456789012:stateMachine:train",
    "ScheduleGroup": "compilegate-dev",
    "SchedulerRole": "arn:aws:iam::123456789012:role/scheduler",
}  # fmt: skip


@pytest.fixture
def aws(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    stores.client.cache_clear()
    with mock_aws():
        yield
    stores.client.cache_clear()


def test_a_local_cloud_that_has_ended_is_named_at_once(monkeypatch):
    """Clients of a stage would try five times, and the watcher of a trial ten times that."""
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    for name in RunState("", 0, 0, "", False, False, False, 0.0).environment():
        monkeypatch.setenv(name, "restored after the test")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    connect._aim_at(RunState("ended", process.pid, 1, REGION, True, False, False, 0.0))
    began = time.monotonic()
    with pytest.raises(CloudEndedError):
        stores.client("stepfunctions").list_state_machines()

    assert time.monotonic() - began < 2
    stores.client.cache_clear()


def test_the_stage_of_the_embedded_cloud_has_one_name():
    assert LOCAL_STAGE == names.STAGE
    assert connect.stack_name(LOCAL_STAGE) == names.STACK


def test_a_stage_is_found_by_its_stacks_outputs(aws):
    outputs = connect.stack_outputs(cloudformation(outputs=OUTPUTS), "dev")
    cloud = connect.cloud_of(outputs, "dev", 5.0)

    assert ("data", "dev", REGION) == (
        cloud.services.store.bucket,
        cloud.services.settings.stage,
        cloud.services.settings.region,
    )
    assert not cloud.is_local


@pytest.mark.parametrize("missing", sorted(OUTPUTS))
def test_a_stack_of_another_version_is_refused(missing):
    outputs = {name: value for name, value in OUTPUTS.items() if name != missing}

    with pytest.raises(EnvironmentNotReadyError, match=f"no output {missing}"):
        connect.cloud_of(outputs, "dev", 5.0)


def cloudformation(*, outputs, status="CREATE_COMPLETE", region=REGION):
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


@pytest.mark.parametrize(
    ("region", "status", "said"),
    [
        ("us-east-1", None, ("There is no stack compilegate-prod in us-east-1. Fix: deploy it",
                             "`make deploy`", "`make bootstrap`")),
        (REGION, None, ("no stack compilegate-prod in eu-west-1",
                        "cdk.json deploys compilegate-prod to us-east-1")),
        (REGION, "REVIEW_IN_PROGRESS", ("(REVIEW_IN_PROGRESS)", "run `make deploy`")),
        (REGION, "CREATE_IN_PROGRESS", ("(CREATE_IN_PROGRESS)", "wait until")),
        (REGION, "ROLLBACK_COMPLETE", ("(ROLLBACK_COMPLETE)", "events")),
        (REGION, "DELETE_FAILED", ("(DELETE_FAILED)", "`make destroy`")),
    ],
)  # fmt: skip
def test_a_stage_that_cannot_be_used_is_named_with_the_next_step(region, status, said):
    client = cloudformation(
        outputs={} if status else None, status=status or "CREATE_COMPLETE", region=region
    )
    with pytest.raises(NotDeployedError) as raised:
        stack_outputs(client, "prod")

    assert [part for part in said if part not in str(raised.value)] == []


def test_a_region_that_does_not_exist_is_refused_before_any_call(monkeypatch):
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east1")

    with pytest.raises(InvalidInputError) as raised:
        connect.aws("prod")

    assert ("AWS_DEFAULT_REGION", "us-east1") == (raised.value.field, raised.value.value)
    assert "us-east-1" in raised.value.fix
