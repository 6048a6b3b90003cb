"""A canary: what the state-language interpreter must do as AWS does.

The interpreter is two libraries and our patches between them, all pinned. When an update of one
of them changes what a state machine does, a case here fails; when it brings what was missing,
a strict xfail does.
"""

import time

import pytest

from distributions.localcloud.tests.state_language_cases import BRANCH, CASES, chain, jsonata, one

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_state_gives_this_output(machines, trainer, case):
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
def test_a_state_fails_with_this_error(machines, definition, data, error):
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
