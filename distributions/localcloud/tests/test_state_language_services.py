"""The second half of the canary: services called by states, and the API around definitions."""

import json
import uuid

import pytest
from botocore.exceptions import ClientError

from distributions.localcloud.tests.helpers import BUCKET, ROLE
from distributions.localcloud.tests.state_language_cases import (
    BRANCH,
    DISTRIBUTED,
    chain,
    jsonata,
    single_state,
    task,
)

pytestmark = pytest.mark.e2e


def test_distributed_map_reads_a_table_from_s3(machines, trainer):
    trainer.put("table.csv", b"a,b\n1,2\n3,4\n")
    definition = single_state(
        "Map",
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
            "Parameters": {"Bucket": BUCKET, "Key": "table.csv"},
        },
        ItemProcessor={**DISTRIBUTED, **single_state("Pass")},
    )

    assert machines.run(definition)["out"] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_optimised_integrations_of_dynamodb_sns_and_eventbridge(machines, client):
    table, topic = f"t{uuid.uuid4().hex[:8]}", client("sns").create_topic(Name="conformance")
    client("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item = {"pk": {"S": "a"}}
    event = {"Source": "x", "DetailType": "y", "Detail": {"a": 1}, "EventBusName": "default"}
    definition = jsonata(
        chain(
            A=task(
                "dynamodb:putItem",
                Arguments={
                    "TableName": table,
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(pk)",
                },
            ),
            B=task(
                "sns:publish",
                Arguments={"TopicArn": topic["TopicArn"], "Message": "hi", "Subject": "s"},
            ),
            C=task(
                "events:putEvents",
                Arguments={"Entries": [event]},
                Output="{% $states.result.FailedEntryCount %}",
            ),
        )
    )
    first, second = machines.run(definition), machines.run(definition)

    assert first["out"] == 0
    assert second["error"] == "DynamoDB.ConditionalCheckFailedException"


def test_nested_execution_returns_its_output(machines, client):
    child = client("stepfunctions").create_state_machine(
        name=f"child-{uuid.uuid4().hex[:8]}",
        definition=json.dumps(single_state("Pass", Result={"c": 1})),
        roleArn=ROLE,
    )["stateMachineArn"]
    nested = task("states:startExecution.sync:2", Parameters={"StateMachineArn": child})

    assert machines.run(chain(A=nested))["out"]["Output"] == {"c": 1}


@pytest.mark.parametrize(
    "definition",
    [
        {"StartAt": "Nowhere", "States": {"A": BRANCH}},
        {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "Nowhere"}}},
        jsonata(single_state("Pass", Output="{% $states.input. %}")),
        {"States": {}},
    ],
    ids=["unknown start", "unknown next", "broken JSONata", "no start"],
)
def test_invalid_definition_is_refused(client, definition):
    with pytest.raises(ClientError) as caught:
        client("stepfunctions").create_state_machine(
            name=f"bad-{uuid.uuid4().hex[:6]}", definition=json.dumps(definition), roleArn=ROLE
        )

    assert caught.value.response["Error"]["Code"] == "InvalidDefinition"


def test_single_state_can_be_tried(client):
    result = client("stepfunctions").test_state(
        definition=json.dumps({"Type": "Pass", "Parameters": {"x.$": "$.a"}, "End": True}),
        input='{"a": 1}',
        roleArn=ROLE,
    )

    assert (result["status"], json.loads(result["output"])) == ("SUCCEEDED", {"x": 1})


@pytest.mark.xfail(strict=True, reason="moto's grammar does not know ItemBatcher")
def test_distributed_map_batches_items(machines):
    definition = single_state(
        "Map",
        ItemsPath="$.xs",
        ItemBatcher={"MaxItemsPerBatch": 2},
        ItemProcessor={**DISTRIBUTED, **single_state("Pass")},
    )

    assert machines.run(definition, {"xs": [1, 2, 3]})["status"] == "SUCCEEDED"


@pytest.mark.xfail(strict=True, reason="ministack does not know RedriveExecution")
def test_failed_execution_can_be_redriven(machines, client):
    result = machines.run(single_state("Fail", Error="x"))

    assert client("stepfunctions").redrive_execution(executionArn=result["executionArn"])


@pytest.mark.xfail(strict=True, reason="ministack's ValidateStateMachineDefinition says OK to all")
def test_definition_can_be_validated_without_creating_it(client):
    answer = client("stepfunctions").validate_state_machine_definition(
        definition=json.dumps({"StartAt": "Nowhere", "States": {"A": BRANCH}})
    )

    assert answer["result"] == "FAIL"
