"""The deployed digest: its function reads the deployed ledger and tells the deployed topic."""

from __future__ import annotations

import json
import time
import uuid
from types import SimpleNamespace

import pytest

from compilegate.domain.naming import stack_name
from tests.usecases.production_ledger import ran, register

pytestmark = pytest.mark.e2e


@pytest.fixture
def told(app):
    """Waits for the next message of one owner, as a queue subscribed to the topic gets it."""
    owner, sqs = f"owner-{uuid.uuid4().hex[:8]}", app.client("sqs")
    url = sqs.create_queue(QueueName=owner)["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    subscription = app.client("sns").subscribe(
        TopicArn=app.outputs["DecisionTopic"],
        Protocol="sqs",
        Endpoint=queue["QueueArn"],
        Attributes={"FilterPolicy": json.dumps({"owner": [owner]})},
    )

    def receive():
        found = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2).get("Messages", [])
        return [json.loads(message["Body"]) for message in found]

    yield SimpleNamespace(owner=owner, receive=receive)
    app.client("sns").unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])


def test_an_owner_hears_of_their_week_from_the_deployed_function(app, told):
    name = f"w-{told.owner}"[:32]
    cloud = SimpleNamespace(store=app.store, ledger=app.ledger)
    register(cloud, name, told.owner)
    ran(cloud, name, time.time() - 3600, "baseline")

    answer = app.client("lambda").invoke(FunctionName=f"{stack_name('local')}-weekly-digest")
    document = json.loads(answer["Payload"].read())

    assert "FunctionError" not in answer, document
    assert document["sent"] >= 1
    (message,) = told.receive()
    body = json.loads(message["Message"])
    assert ("digest", told.owner, {"baseline": 1}) == (
        body["kind"], body["owner"], body["figures"]["runs"],
    )  # fmt: skip
    assert name in json.dumps(body["figures"]["told"])
