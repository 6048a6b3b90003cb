"""A canary: what the state-language interpreter must do as AWS does.

The interpreter is two libraries and our patches between them, all pinned. When an update of one
of them changes what a state machine does, a case here fails; when it brings what was missing,
a strict xfail does.
"""

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.localcloud.helpers import BUCKET, ROLE

pytestmark = pytest.mark.e2e


def one(state_type, **fields):
    return {"StartAt": "S", "States": {"S": {"Type": state_type, **fields}}}


def jsonata(definition):
    return {"QueryLanguage": "JSONata", **definition}


def chain(**states):
    """States that follow each other in the order given; the last one ends."""
    names = list(states)
    linked = {
        name: {**states[name], **({"Next": after} if after else {"End": True})}
        for name, after in zip(names, [*names[1:], None], strict=True)
    }
    return {"StartAt": names[0], "States": linked}


@dataclass(frozen=True)
class Case:
    """An execution that succeeds, and its output."""

    name: str
    definition: dict[str, Any]
    data: Any
    output: Any


INTRINSICS = {
    "format": ("States.Format('x-{}', $.n)", "x-5"),
    "array": ("States.Array(1, $.n)", [1, 5]),
    "add": ("States.MathAdd($.n, 2)", 7),
    "merge": ("States.JsonMerge($.o, $.p, false)", {"x": 1, "y": 2}),
    "parse": ("States.StringToJson('{\"q\":1}')", {"q": 1}),
    "item": ("States.ArrayGetItem(States.Array(1, 2, 3), 1)", 2),
    "encode": ("States.Base64Encode('hi')", "aGk="),
    "text": ("States.JsonToString($.o)", '{"x":1}'),
    "partition": ("States.ArrayPartition(States.Array(1, 2, 3), 2)", [[1, 2], [3]]),
    "range": ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
    "split": ("States.StringSplit('a,b', ',')", ["a", "b"]),
    "contains": ("States.ArrayContains(States.Array(1, 2), 2)", True),
    "unique": ("States.ArrayUnique(States.Array(1, 1))", [1]),
    "length": ("States.ArrayLength(States.Array(1, 1))", 2),
}
JSONATA_OUTPUT = {
    "double": "{% $states.input.n * 2 %}",
    "sum": "{% $sum($states.input.l.v) %}",
    "sorted": "{% $sort($states.input.l, function($a,$b){$a.v < $b.v})[0].k %}",
    "range": "{% $range(1,5,2) %}",
    "partition": "{% $partition([1,2,3],2) %}",
    "parse": "{% $parse('{\"q\":1}') %}",
    "hash": "{% $hash('a','SHA-256') %}",
    "literal": "text",
}
SHA256_OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
BRANCH = {"Type": "Pass", "End": True}

CASES = [
    Case(
        "intrinsic functions",
        one(
            "Pass", Parameters={f"{k}.$": v[0] for k, v in INTRINSICS.items()}, End=True
        ),
        {"n": 5, "o": {"x": 1}, "p": {"y": 2}},
        {k: v[1] for k, v in INTRINSICS.items()},
    ),
    Case(
        "variables in JSONPath",
        chain(
            A={"Type": "Pass", "Assign": {"v.$": "$.n", "w": "literal"}},
            B={"Type": "Pass", "Parameters": {"v.$": "$v", "w.$": "$w"}},
        ),
        {"n": 3},
        {"v": 3, "w": "literal"},
    ),
    Case(
        "JSONata output",
        jsonata(one("Pass", Output=JSONATA_OUTPUT, End=True)),
        {"n": 4, "l": [{"k": "a", "v": 1}, {"k": "b", "v": 3}]},
        {
            "double": 8, "sum": 4, "sorted": "b", "range": [1, 3, 5],
            "partition": [[1, 2], [3]], "parse": {"q": 1}, "hash": SHA256_OF_A,
            "literal": "text",
        },
    ),
    Case(
        "variables in JSONata",
        jsonata(
            chain(
                A={"Type": "Pass", "Assign": {"v": "{% $states.input.n %}"}},
                B={"Type": "Pass", "Output": "{% $v + 1 %}"},
            )
        ),
        {"n": 3},
        4,
    ),
    Case(
        "parallel with arguments, output and assign",
        jsonata(
            chain(
                P={
                    "Type": "Parallel",
                    "Arguments": {"k": "{% $states.input.n %}"},
                    "Branches": [
                        one("Pass", Output="{% $states.input.k + 1 %}", End=True),
                        one("Pass", Output="{% $states.input.k + 2 %}", End=True),
                    ],
                    "Output": {"r": "{% $states.result %}"},
                    "Assign": {"count": "{% $count($states.result) %}"},
                },
                Z={"Type": "Pass", "Output": {"c": "{% $count %}", "i": "{% $states.input %}"}},
            )
        ),
        {"n": 1},
        {"c": 2, "i": {"r": [2, 3]}},
    ),
    Case(
        "map with item selector",
        jsonata(
            one(
                "Map",
                Items="{% $states.input.xs %}",
                ItemSelector={
                    "v": "{% $states.context.Map.Item.Value %}",
                    "i": "{% $states.context.Map.Item.Index %}",
                },
                ItemProcessor=one(
                    "Pass", Output="{% $states.input.v * 10 + $states.input.i %}", End=True
                ),
                Output="{% $sum($states.result) %}",
                End=True,
            )
        ),
        {"xs": [1, 2, 3]},
        63,
    ),
    Case(
        "variables of a branch stay in it",
        jsonata(
            chain(
                A={"Type": "Pass", "Assign": {"v": 1}},
                P={
                    "Type": "Parallel",
                    "Branches": [one("Pass", Assign={"inner": 5}, Output="{% $v %}", End=True)],
                },
                Z={"Type": "Pass", "Output": {"has": "{% $exists($inner) %}", "v": "{% $v %}"}},
            )
        ),
        {},
        {"has": False, "v": 1},
    ),
    Case(
        "choice with assign and output",
        jsonata(
            {
                "StartAt": "C",
                "States": {
                    "C": {
                        "Type": "Choice",
                        "Choices": [
                            {
                                "Condition": "{% $states.input.n > 3 %}",
                                "Next": "Y",
                                "Output": {"o": 1},
                                "Assign": {"z": 2},
                            }
                        ],
                        "Default": "N",
                    },
                    "Y": {
                        "Type": "Pass",
                        "Output": {"z": "{% $z %}", "i": "{% $states.input %}"},
                        "End": True,
                    },
                    "N": {"Type": "Fail", "Error": "no"},
                },
            }
        ),
        {"n": 5},
        {"z": 2, "i": {"o": 1}},
    ),
    Case(
        "distributed map in JSONata",
        jsonata(
            one(
                "Map",
                Items="{% $states.input.xs %}",
                ItemProcessor={
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    **one("Pass", Output="{% $states.input + 1 %}", End=True),
                },
                End=True,
            )
        ),
        {"xs": [1, 2, 3]},
        [2, 3, 4],
    ),
    Case(
        "aws-sdk integrations",
        chain(
            A={
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:ssm:putParameter",
                "Parameters": {
                    "Name": "/conformance/x", "Value.$": "$.v", "Type": "String", "Overwrite": True,
                },
                "ResultPath": "$.put",
            },
            B={
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
                "Parameters": {"Name": "/conformance/x"},
                "ResultSelector": {"value.$": "$.Parameter.Value"},
            },
        ),
        {"v": "hello"},
        {"value": "hello"},
    ),
    Case(
        "names of aws-sdk errors",
        chain(
            A={
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
                "Parameters": {"Name": "/conformance/none"},
                "Catch": [{"ErrorEquals": ["Ssm.ParameterNotFoundException"], "Next": "B"}],
            },
            B={"Type": "Pass", "Result": "caught"},
        ),
        {},
        "caught",
    ),
    Case(
        "objects as S3 bodies",
        jsonata(
            chain(
                A={
                    "Type": "Task",
                    "Resource": "arn:aws:states:::aws-sdk:s3:putObject",
                    "Arguments": {"Bucket": BUCKET, "Key": "c.json", "Body": {"a": 1}},
                },
                B={
                    "Type": "Task",
                    "Resource": "arn:aws:states:::aws-sdk:s3:getObject",
                    "Arguments": {"Bucket": BUCKET, "Key": "c.json"},
                    "Output": "{% $parse($states.result.Body) %}",
                },
            )
        ),
        {},
        {"a": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_output(machines, trainer, case):
    result = machines.run(case.definition, case.data)

    assert result["status"] == "SUCCEEDED", (result.get("error"), result.get("cause"))
    assert result["out"] == case.output


MISSING_PATH = one("Pass", Parameters={"x.$": "$.missing"}, End=True)


@pytest.mark.parametrize(
    ("definition", "data", "error"),
    [
        pytest.param(
            jsonata(one("Pass", Output="{% $states.input.missing %}", End=True)),
            {},
            "States.QueryEvaluationError",
            id="undefined JSONata result",
        ),
        pytest.param(MISSING_PATH, {}, "States.Runtime", id="missing path"),
        pytest.param(
            {
                "StartAt": "P",
                "States": {
                    "P": {
                        "Type": "Parallel",
                        "Branches": [MISSING_PATH],
                        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "R"}],
                        "End": True,
                    },
                    "R": BRANCH,
                },
            },
            {},
            "States.Runtime",
            id="States.ALL does not catch States.Runtime",
        ),
        pytest.param(
            one("Fail", ErrorPath="$.s", CausePath="States.Format('n={}', $.a)"),
            {"s": "Custom", "a": 1},
            "Custom",
            id="paths in Fail",
        ),
        pytest.param(
            one(
                "Parallel",
                Branches=[
                    one("Fail", Error="First"),
                    one("Wait", Seconds=30, End=True),
                ],
                End=True,
            ),
            {},
            "First",
            id="a failing branch ends its siblings",
        ),
    ],
)
def test_error(machines, definition, data, error):
    result = machines.run(definition, data, seconds=5)

    assert (result["status"], result["error"]) == ("FAILED", error)


COUNT_AND_FAIL = (
    "import os\ndef handler(event, context):\n    path = event['path']\n"
    "    open(path, 'a').write('x')\n    count = os.path.getsize(path)\n"
    "    if count < 3:\n        raise ValueError(count)\n    return count\n"
)


def test_retry_by_the_class_of_the_error(machines, make_function, counter):
    """The second wait would take 50 s without MaxDelaySeconds."""
    task = {
        "Type": "Task",
        "Resource": make_function(COUNT_AND_FAIL),
        "Retry": [
            {
                "ErrorEquals": ["ValueError"],
                "IntervalSeconds": 1,
                "BackoffRate": 50,
                "MaxDelaySeconds": 1,
                "MaxAttempts": 4,
                "JitterStrategy": "FULL",
            }
        ],
        "End": True,
    }
    result = machines.run({"StartAt": "T", "States": {"T": task}}, {"path": counter})

    assert result["out"] == 3
    assert result["seconds"] < 8


def test_error_class_and_message_of_a_function_reach_catch(machines, make_function):
    arn = make_function(
        "class WorkloadLocked(Exception): pass\n"
        "def handler(event, context):\n    raise WorkloadLocked('held by ' + event['by'])\n"
    )
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": arn, "Payload": {"by": "{% $states.input.by %}"}},
        "Catch": [
            {
                "ErrorEquals": ["WorkloadLocked"],
                "Output": "{% $parse($states.errorOutput.Cause).errorMessage %}",
                "Next": "R",
            }
        ],
        "End": True,
    }
    definition = jsonata({"StartAt": "T", "States": {"T": task, "R": BRANCH}})

    assert machines.run(definition, {"by": "x"})["out"] == "held by x"


def test_task_that_takes_too_long_times_out(machines, make_function):
    task = {
        "Type": "Task",
        "Resource": make_function("import time\ndef handler(e, c):\n    time.sleep(3)\n"),
        "TimeoutSeconds": 1,
        "Catch": [{"ErrorEquals": ["States.Timeout"], "ResultPath": None, "Next": "R"}],
        "End": True,
    }
    result = machines.run({"StartAt": "T", "States": {"T": task, "R": BRANCH}})

    assert result["status"] == "SUCCEEDED"
    assert result["seconds"] < 3


def test_machine_that_takes_too_long_times_out(machines):
    definition = {**one("Wait", Seconds=30, End=True), "TimeoutSeconds": 1}

    assert machines.run(definition)["status"] == "TIMED_OUT"


WAIT_FOR_TOKEN = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "End": True,
}


def test_task_tokens_of_parallel_branches_are_their_own(machines, make_function):
    arn = make_function(
        "import boto3, json\ndef handler(e, c):\n    boto3.client('stepfunctions')"
        ".send_task_success(taskToken=e['token'], output=json.dumps(e['number']))\n"
    )

    def branch(number):
        payload = {"token": "{% $states.context.Task.Token %}", "number": number}
        arguments = {"FunctionName": arn, "Payload": payload}
        return {"StartAt": "T", "States": {"T": {**WAIT_FOR_TOKEN, "Arguments": arguments}}}

    definition = jsonata(one("Parallel", Branches=[branch(n) for n in (1, 2, 3)], End=True))

    assert machines.run(definition)["out"] == [1, 2, 3]


def test_missing_heartbeat_fails_the_task(machines, make_function):
    payload = {"FunctionName": make_function("def handler(e, c):\n    return 1\n")}
    task = {**WAIT_FOR_TOKEN, "Parameters": payload, "HeartbeatSeconds": 1}
    result = machines.run({"StartAt": "T", "States": {"T": task}}, seconds=6)

    assert result["status"] == "FAILED"
    # AWS documents both names for it.
    assert result["error"] in ("States.HeartbeatTimeout", "States.Timeout")


def test_context_of_parallel_branches_is_their_own(machines):
    def branch(number):
        return {
            "StartAt": f"A{number}",
            "States": {f"A{number}": {**BRANCH, "Parameters": {"n.$": "$$.State.Name"}}},
        }

    definition = one("Parallel", Branches=[branch(n) for n in range(6)], End=True)

    assert [item["n"] for item in machines.run(definition)["out"]] == [f"A{n}" for n in range(6)]


def test_stopped_execution_stays_aborted(machines, client):
    late = chain(W={"Type": "Wait", "Seconds": 1}, F={"Type": "Pass"})
    late["States"]["F"] = {"Type": "Fail", "Error": "late"}
    executions = [machines.start(late), machines.start(one("Parallel", Branches=[late], End=True))]
    time.sleep(0.3)
    for execution in executions:
        client("stepfunctions").stop_execution(executionArn=execution, error="User", cause="why")
    time.sleep(1.2)
    states = [machines.wait(execution) for execution in executions]

    assert [(state["status"], state["error"]) for state in states] == [("ABORTED", "User")] * 2


def test_history_names_inner_states(machines):
    branch = {"StartAt": "Inner", "States": {"Inner": BRANCH}}
    result = machines.run(one("Parallel", Branches=[branch], End=True))
    events = machines.events(result["executionArn"])
    entered = [
        e["stateEnteredEventDetails"]["name"] for e in events if "stateEnteredEventDetails" in e
    ]

    assert entered == ["S", "Inner"]
    assert events[0]["type"] == "ExecutionStarted"
    assert events[-1]["type"] == "ExecutionSucceeded"


def test_history_can_be_read_while_the_execution_runs(machines, client):
    execution = machines.start(one("Wait", Seconds=30, End=True))
    deadline = time.monotonic() + 5
    kinds = []
    while "WaitStateEntered" not in kinds and time.monotonic() < deadline:
        kinds = [event["type"] for event in machines.events(execution)]
    client("stepfunctions").stop_execution(executionArn=execution)

    assert kinds == ["ExecutionStarted", "WaitStateEntered"]


def test_distributed_map_reads_a_table_from_s3(machines, trainer):
    trainer.put("table.csv", b"a,b\n1,2\n3,4\n")
    definition = one(
        "Map",
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
            "Parameters": {"Bucket": BUCKET, "Key": "table.csv"},
        },
        ItemProcessor={
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            **one("Pass", End=True),
        },
        End=True,
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
    put = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:putItem",
        "Arguments": {
            "TableName": table,
            "Item": {"pk": {"S": "a"}},
            "ConditionExpression": "attribute_not_exists(pk)",
        },
    }
    publish = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {"TopicArn": topic["TopicArn"], "Message": "hi", "Subject": "s"},
    }
    event = {"Source": "x", "DetailType": "y", "Detail": {"a": 1}, "EventBusName": "default"}
    send = {
        "Type": "Task",
        "Resource": "arn:aws:states:::events:putEvents",
        "Arguments": {"Entries": [event]},
        "Output": "{% $states.result.FailedEntryCount %}",
    }
    definition = jsonata(chain(A=put, B=publish, C=send))
    first, second = machines.run(definition), machines.run(definition)

    assert first["out"] == 0
    assert second["error"] == "DynamoDB.ConditionalCheckFailedException"


def test_nested_execution_returns_its_output(machines, client):
    child = client("stepfunctions").create_state_machine(
        name=f"child-{uuid.uuid4().hex[:8]}",
        definition=json.dumps(one("Pass", Result={"c": 1}, End=True)),
        roleArn=ROLE,
    )["stateMachineArn"]
    definition = one(
        "Task",
        Resource="arn:aws:states:::states:startExecution.sync:2",
        Parameters={"StateMachineArn": child},
        End=True,
    )

    assert machines.run(definition)["out"]["Output"] == {"c": 1}


@pytest.mark.parametrize(
    "definition",
    [
        {"StartAt": "Nowhere", "States": {"A": BRANCH}},
        {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "Nowhere"}}},
        jsonata(one("Pass", Output="{% $states.input. %}", End=True)),
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
    definition = one(
        "Map",
        ItemsPath="$.xs",
        ItemBatcher={"MaxItemsPerBatch": 2},
        ItemProcessor={
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            **one("Pass", End=True),
        },
        End=True,
    )

    assert machines.run(definition, {"xs": [1, 2, 3]})["status"] == "SUCCEEDED"


@pytest.mark.xfail(strict=True, reason="ministack does not know RedriveExecution")
def test_failed_execution_can_be_redriven(machines, client):
    result = machines.run(one("Fail", Error="x"))

    assert client("stepfunctions").redrive_execution(executionArn=result["executionArn"])


@pytest.mark.xfail(strict=True, reason="ministack's ValidateStateMachineDefinition says OK to all")
def test_definition_can_be_validated_without_creating_it(client):
    answer = client("stepfunctions").validate_state_machine_definition(
        definition=json.dumps({"StartAt": "Nowhere", "States": {"A": BRANCH}})
    )

    assert answer["result"] == "FAIL"
