"""States of the app's machines, run as deployed: what a subscriber receives, how TRAIN begins."""

from __future__ import annotations

import json
import uuid

import pytest

from compilegate.domain import naming
from compilegate.domain.claims import Notification
from distributions.localcloud.tests.state_language_cases import jsonata
from stacks.functions import STEPS
from stacks.states import notify
from stacks.train import definition

pytestmark = pytest.mark.e2e

FUNCTIONS = {step.name: f"arn:aws:lambda:us-east-1:111122223333:{step.name}" for step in STEPS}
BEGIN = definition(FUNCTIONS, bucket="data", topic_arn="arn:aws:sns:us-east-1:1:t")["States"][
    "Begin"
]
VARIABLES = ("workload", "team_job", "scheduled", "first_wait")
TAGGED = {"TrainingJobName": "nightly", "Tags": {naming.TAG_WORKLOAD: "bert-docs"}}


@pytest.fixture
def topic(client):
    """A topic with a queue that wants the messages of one owner, and one that wants all."""
    arn = client("sns").create_topic(Name=f"topic-{uuid.uuid4().hex[:8]}")["TopicArn"]
    queues = {}
    for name, policy in (("all", None), ("mine", {"owner": ["ml-platform"]})):
        url = client("sqs").create_queue(QueueName=f"{name}-{uuid.uuid4().hex[:8]}")["QueueUrl"]
        attributes = client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        client("sns").subscribe(
            TopicArn=arn,
            Protocol="sqs",
            Endpoint=attributes["Attributes"]["QueueArn"],
            Attributes={"FilterPolicy": json.dumps(policy)} if policy else {},
        )
        queues[name] = url
    return arn, queues


def received(client, url):
    answer = client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [json.loads(message["Body"]) for message in answer.get("Messages", ())]


def run(machines, topic_arn, answer):
    states = {
        "Answer": {"Type": "Pass", "Output": answer, "Next": "Notify"},
        "Notify": notify(topic_arn, then="Done", catches=[]),
        "Done": {"Type": "Succeed"},
    }
    return machines.run(jsonata({"StartAt": "Answer", "States": states}))


def answer_about(owner):
    return Notification(
        kind="decision", stage="local", subject="[compilegate local] a: {% no code %}",
        text="Über \"quotes\" and\nlines.", workload="a", owner=owner, figures={"speedup": 1.4},
    ).to_answer()  # fmt: skip


def test_a_program_gets_the_json_and_a_filter_the_owner_it_asked_for(machines, client, topic):
    arn, queues = topic
    for owner in ("ml-platform", "others", None):
        run(machines, arn, answer_about(owner))

    everything, mine = received(client, queues["all"]), received(client, queues["mine"])
    assert 3 == len(everything)
    (message,) = mine
    assert "[compilegate local] a: {% no code %}" == message["Subject"]
    body = json.loads(message["Message"])
    assert ("ml-platform", {"speedup": 1.4}) == (body["owner"], body["figures"])
    assert 'Über "quotes" and\nlines.' == body["text"]


def test_where_a_function_failed_its_two_texts_still_arrive_in_the_same_shape(
    machines, client, topic
):
    arn, queues = topic
    run(machines, arn, {"subject": "a: promote, no report", "message": 'It "stands".'})

    (message,) = received(client, queues["all"])
    assert {
        "schema": 1, "kind": "failed", "subject": "a: promote, no report", "text": 'It "stands".',
    } == json.loads(message["Message"])  # fmt: skip


@pytest.mark.parametrize(
    ("input_", "assigned"),
    [
        ({"workload": "bert-docs"}, ("bert-docs", None, None, None)),
        (
            {"workload": "bert-docs", "scheduled": "2026-11-20T02:00:00Z", "wait_seconds": 0},
            ("bert-docs", None, "2026-11-20T02:00:00Z", 0),
        ),
        ({"workload": "bert-docs", "job": "nightly"}, ("bert-docs", "nightly", None, None)),
        ({"detail": TAGGED}, ("bert-docs", "nightly", None, None)),
        ({"detail": {**TAGGED, "Tags": {}}}, (None, "nightly", None, None)),
        ({"detail": {"TrainingJobName": "nightly"}}, (None, "nightly", None, None)),
        ({}, (None, None, None, None)),
    ],
    ids=["train", "schedule", "by hand", "event", "no workload tag", "no tags", "nothing"],
)
def test_a_field_that_the_input_lacks_is_null_and_ends_nothing(machines, input_, assigned):
    states = {
        "Begin": {**BEGIN, "Next": "Done"},
        "Done": {"Type": "Succeed", "Output": {name: f"{{% ${name} %}}" for name in VARIABLES}},
    }
    answer = machines.run(jsonata({"StartAt": "Begin", "States": states}), input_)

    assert dict(zip(VARIABLES, assigned, strict=True)) == answer["out"]
