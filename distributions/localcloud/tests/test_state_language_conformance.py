"""A canary: what the state-language interpreter must do as AWS does.

The interpreter is two libraries and our patches between them, all pinned. When an update of one
of them changes what a state machine does, a case here fails; when it brings what was missing,
a strict xfail does.
"""

import json
import time
import uuid

import pytest
from botocore.exceptions import ClientError

from distributions.localcloud.tests.helpers import ROLE
from distributions.localcloud.tests.state_language_cases import (
    BRANCH,
    CASES,
    DISTRIBUTED,
    chain,
    jsonata,
    passing,
    single_state,
    task,
)

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_state_gives_this_output(machines, trainer, case):
    result = machines.run(case.definition, case.data)

    assert result["status"] == "SUCCEEDED", (result.get("error"), result.get("cause"))
    assert result["out"] == case.output


MISSING_PATH = single_state("Pass", Parameters={"x.$": "$.missing"})
CATCHES_ALL = {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "R"}]}
FAILING = {
    "undefined JSONata result": (
        jsonata(single_state("Pass", Output="{% $states.input.missing %}")),
        "States.QueryEvaluationError",
    ),
    "missing path": (MISSING_PATH, "States.Runtime"),
    "States.ALL does not catch States.Runtime": (
        chain(P={"Type": "Parallel", "Branches": [MISSING_PATH], **CATCHES_ALL}, R=passing()),
        "States.Runtime",
    ),
    "paths in Fail": (
        single_state("Fail", ErrorPath="$.s", CausePath="States.Format('n={}', $.a)"),
        "Custom",
    ),
    "a failing branch ends its siblings": (
        single_state(
            "Parallel",
            Branches=[single_state("Fail", Error="First"), single_state("Wait", Seconds=30)],
        ),
        "First",
    ),
}


@pytest.mark.parametrize(("definition", "error"), FAILING.values(), ids=FAILING)
def test_a_state_fails_with_this_error(machines, definition, error):
    result = machines.run(definition, {"s": "Custom", "a": 1}, seconds=5)

    assert (result["status"], result["error"]) == ("FAILED", error)


COUNT_AND_FAIL = (
    "import os\ndef handler(event, context):\n    path = event['path']\n"
    "    open(path, 'a').write('x')\n    count = os.path.getsize(path)\n"
    "    if count < 3:\n        raise ValueError(count)\n    return count\n"
)


def calling(function, **fields):
    """A task that is a function's call."""
    return {"Type": "Task", "Resource": function, **fields}


def test_retry_by_the_class_of_the_error(machines, make_function, counter):
    """The second wait would take 50 s without MaxDelaySeconds."""
    retry = {
        "ErrorEquals": ["ValueError"], "IntervalSeconds": 1, "BackoffRate": 50,
        "MaxDelaySeconds": 1, "MaxAttempts": 4, "JitterStrategy": "FULL",
    }  # fmt: skip
    definition = chain(T=calling(make_function(COUNT_AND_FAIL), Retry=[retry]))
    result = machines.run(definition, {"path": counter})

    assert result["out"] == 3
    assert result["seconds"] < 50


def test_task_tokens_of_parallel_branches_are_their_own(machines, make_function):
    arn = make_function(
        "import boto3, json\ndef handler(e, c):\n    boto3.client('stepfunctions')"
        ".send_task_success(taskToken=e['token'], output=json.dumps(e['number']))\n"
    )

    def branch(number):
        payload = {"token": "{% $states.context.Task.Token %}", "number": number}
        arguments = {"FunctionName": arn, "Payload": payload}
        return chain(T=task("lambda:invoke.waitForTaskToken", Arguments=arguments))

    definition = jsonata(single_state("Parallel", Branches=[branch(n) for n in (1, 2, 3)]))

    assert machines.run(definition)["out"] == [1, 2, 3]


def test_missing_heartbeat_fails_the_task(machines, make_function):
    payload = {"FunctionName": make_function("def handler(e, c):\n    return 1\n")}
    waits = task("lambda:invoke.waitForTaskToken", Parameters=payload, HeartbeatSeconds=1)
    result = machines.run(chain(T=waits), seconds=6)

    assert result["status"] == "FAILED"
    # AWS documents both names for it.
    assert result["error"] in ("States.HeartbeatTimeout", "States.Timeout")


def test_stopped_execution_stays_aborted(machines, client):
    late = {
        "StartAt": "W",
        "States": {
            "W": {"Type": "Wait", "Seconds": 3, "Next": "F"},
            "F": {"Type": "Fail", "Error": "late"},
        },
    }
    executions = [machines.start(late), machines.start(single_state("Parallel", Branches=[late]))]
    time.sleep(0.3)
    for execution in executions:
        client("stepfunctions").stop_execution(executionArn=execution, error="User", cause="why")
    time.sleep(3.2)
    states = [machines.wait(execution) for execution in executions]

    assert [(state["status"], state["error"]) for state in states] == [("ABORTED", "User")] * 2


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


@pytest.mark.xfail(strict=True, reason="moto's grammar does not know ItemBatcher")
def test_distributed_map_batches_items(machines):
    definition = single_state(
        "Map",
        ItemsPath="$.xs",
        ItemBatcher={"MaxItemsPerBatch": 2},
        ItemProcessor={**DISTRIBUTED, **single_state("Pass")},
    )

    assert machines.run(definition, {"xs": [1, 2, 3]})["status"] == "SUCCEEDED"
