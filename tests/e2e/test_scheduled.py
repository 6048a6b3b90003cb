"""The deployed functions that schedules start: the sweep, the weekly digest."""

from __future__ import annotations

import json
import time
import uuid
from types import SimpleNamespace

import pytest

from compilegate.domain import naming
from compilegate.domain.naming import stack_name
from tests.usecases.production_ledger import ran, register

pytestmark = pytest.mark.e2e
CANDIDATE = 1
FUNCTION = f"{stack_name('local')}-sweep"


def sweep(app):
    """Invoke the function as its schedule does, but leave no time to the clean-up by event."""
    answer = app.client("lambda").invoke(
        FunctionName=f"{FUNCTION}:live", Payload=json.dumps({"grace_seconds": 0})
    )
    document = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, document
    return document


def copy_of(app, job, name, tags):
    """The same job once more under another name, as if its execution had left it behind."""
    sagemaker = app.client("sagemaker")
    described = sagemaker.describe_training_job(TrainingJobName=job)
    fields = (
        "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig",
        "OutputDataConfig", "ResourceConfig", "StoppingCondition", "Environment",
    )  # fmt: skip
    request = {field: described[field] for field in fields if field in described}
    request["AlgorithmSpecification"].pop("MetricDefinitions", None)
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    sagemaker.create_training_job(TrainingJobName=name, Tags=listed, **request)


def test_an_orphan_is_stopped_and_recorded(trial, app):
    """It started as its execution was stopped, too late for the clean-up."""
    ended = trial(hang="compile")
    stopped = ended.wait_for_full_run(CANDIDATE)
    app.client("stepfunctions").stop_execution(executionArn=ended.execution)
    ended.wait_until_released()
    orphan = f"{stopped.rpartition('-r')[0]}-r1"
    tags = {
        naming.TAG_WORKLOAD: ended.workload,
        naming.TAG_STAGE: "quality",
        naming.TAG_EXECUTION: ended.execution,
    }
    copy_of(app, stopped, orphan, tags)

    assert sweep(app)["stopped_jobs"] >= 1
    sagemaker = app.client("sagemaker")
    status = sagemaker.describe_training_job(TrainingJobName=orphan)["TrainingJobStatus"]
    assert status in ("Stopping", "Stopped")
    (entry,) = [e for e in app.ledger.raw.entries(ended.workload) if e["kind"] == "swept"]
    assert [orphan] == entry["stopped_jobs"]


@pytest.fixture
def subscriber(app):
    """Waits for the next message of one owner, as a queue subscribed to the topic gets it."""
    owner, sqs = f"owner-{uuid.uuid4().hex[:8]}", app.client("sqs")
    url = sqs.create_queue(QueueName=owner)["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    topic = {"ArnEquals": {"aws:SourceArn": app.outputs["DecisionTopic"]}}
    statement = {
        "Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage", "Resource": queue["QueueArn"], "Condition": topic,
    }  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    subscription = app.client("sns").subscribe(
        TopicArn=app.outputs["DecisionTopic"],
        Protocol="sqs",
        Endpoint=queue["QueueArn"],
        Attributes={"FilterPolicy": json.dumps({"owner": [owner]})},
    )

    def receive():
        messages = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2).get("Messages", [])
        return [json.loads(message["Body"]) for message in messages]

    yield SimpleNamespace(owner=owner, receive=receive)
    app.client("sns").unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])


def test_an_owner_hears_of_their_week_from_the_deployed_function(app, subscriber):
    name = f"w-{subscriber.owner}"[:32]
    cloud = SimpleNamespace(store=app.store, ledger=app.ledger)
    register(cloud, name, subscriber.owner)
    ran(cloud, name, time.time() - 3600, "baseline")

    answer = app.client("lambda").invoke(FunctionName=f"{stack_name('local')}-weekly-digest")
    document = json.loads(answer["Payload"].read())

    assert "FunctionError" not in answer, document
    assert document["sent"] >= 1
    (message,) = subscriber.receive()
    body = json.loads(message["Message"])
    assert ("digest", subscriber.owner, {"baseline": 1}) == (
        body["kind"], body["owner"], body["figures"]["runs"],
    )  # fmt: skip
    assert name in json.dumps(body["figures"]["active"])
