"""Runs one step of a deployment in this process, where a debugger can stop it.

    eval "$(compilegate local env)"
    python -m tools.step plan_trial --execution NAME
    python -m pdb -m tools.step plan_trial --event event.json

The code is the checkout's, the environment is the deployed function's, the event comes from a file
or is the last one that an execution sent to this step. The step does what it does when it is
deployed: it reads and writes the bucket, the ledger and the flag of the stage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import boto3

from compilegate.domain.claims import LOCAL_STAGE
from compilegate.domain.naming import stack_name
from lambdas import handlers


def function_name(step: str, stage: str) -> str:
    """The deployed function of a step."""
    return f"{stack_name(stage)}-{step.replace('_', '-')}"


def last_event(history: Iterable[Mapping[str, Any]], function: str) -> dict[str, Any]:
    """What an execution sent to a function last; raises LookupError where it sent nothing.

    ``history`` is what GetExecutionHistory returns, the oldest entry first.
    """
    for entry in reversed([*history]):
        task = json.loads(entry.get("taskScheduledEventDetails", {}).get("parameters", "{}"))
        if function in str(task.get("FunctionName", "")).split(":"):
            event: dict[str, Any] = task["Payload"]
            return event
    raise LookupError(f"the execution has not called {function}")


def sent(execution: str, function: str) -> dict[str, Any]:
    """What an execution of either state machine, by its name, sent to a function last."""
    states = boto3.client("stepfunctions")
    for machine in states.list_state_machines()["stateMachines"]:
        arn = machine["stateMachineArn"].replace(":stateMachine:", ":execution:")
        pages = states.get_paginator("get_execution_history").paginate(
            executionArn=f"{arn}:{execution}"
        )
        try:
            return last_event([entry for page in pages for entry in page["events"]], function)
        except states.exceptions.ExecutionDoesNotExist:
            continue
    raise LookupError(f"no state machine has an execution {execution}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=handlers.STEPS, metavar="STEP", help="of lambdas/handlers")
    event = parser.add_mutually_exclusive_group(required=True)
    event.add_argument("--event", type=Path, metavar="FILE", help="the event as JSON")
    event.add_argument("--execution", metavar="NAME", help="the execution whose event is sent")
    parser.add_argument("--stage", default=LOCAL_STAGE, help="default: the embedded cloud")
    arguments = parser.parse_args()
    function = function_name(arguments.step, arguments.stage)
    configured = boto3.client("lambda").get_function_configuration(FunctionName=function)
    os.environ.update(configured["Environment"]["Variables"])
    payload = (
        json.loads(arguments.event.read_text())
        if arguments.event
        else sent(arguments.execution, function)
    )
    answer = getattr(handlers, arguments.step)(payload, None)
    sys.stdout.write(f"{json.dumps(answer, indent=2)}\n")


if __name__ == "__main__":
    main()
