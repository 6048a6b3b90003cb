"""Executions in the deployed app, also of state machines in which one state fails."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from distributions.localcloud.tests.helpers import function_bundle
from tests.asl.definitions import states
from tests.e2e.conftest import App, Running, trial_document
from tests.e2e.production import Production

Change = Callable[[dict[str, Any]], None]
# A loaded machine takes its time.
PATIENCE_SECONDS = 400.0
OUTPUTS = {"evaluate": "EvaluateStateMachine", "train": "TrainStateMachine"}
FAILING = "def handler(event, context):\n    raise RuntimeError('made to fail')\n"
SILENT = "def handler(event, context):\n    pass\n"


class ScenarioRunner:
    """Starts executions and waits for their end."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._failing = self._function("made-to-fail", FAILING)
        self._silent = self._function("made-to-be-silent", SILENT)

    def changed(self, machine: str, changes: Mapping[str, Change]) -> str:
        """ARN of a copy of ``machine`` with ``changes`` made to states by name."""
        client = self.app.client("stepfunctions")
        deployed = client.describe_state_machine(stateMachineArn=self.app.outputs[OUTPUTS[machine]])
        definition = json.loads(deployed["definition"])
        to_change = {name: state for name, state in states(definition) if name in changes}
        for name, change in changes.items():
            change(to_change[name])
        return str(
            client.create_state_machine(
                name=f"changed-{uuid.uuid4().hex[:8]}-{machine}",
                definition=json.dumps(definition),
                roleArn=deployed["roleArn"],
            )["stateMachineArn"]
        )

    def failing(self, machine: str, *names: str) -> str:
        """ARN of a copy of ``machine`` in which what these states call fails."""
        return self.changed(machine, dict.fromkeys(names, self._make_fail))

    def evaluate(self, name: str, machine: str | None = None, **settings: Any) -> Running:
        """Start a trial; ``settings`` are those of the workload and of the stand-in script."""
        return self.app.start(trial_document(name, **settings), machine)

    def trial(self, name: str, machine: str | None = None, **settings: Any) -> dict[str, Any]:
        """A trial to its end."""
        return self.evaluate(name, machine, **settings).wait(PATIENCE_SECONDS)

    def train(
        self, workload: Production, machine: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """A production run to its end."""
        execution = self.app.client("stepfunctions").start_execution(
            stateMachineArn=machine or self.app.outputs[OUTPUTS["train"]],
            input=json.dumps({"workload": workload.name, **more}),
        )["executionArn"]
        return workload.wait(execution, PATIENCE_SECONDS)

    def overdue(self, seconds: str) -> Change:
        """A change after which a task waits for an answer that never comes, for ``seconds``."""

        def change(state: dict[str, Any]) -> None:
            state["Resource"] = "arn:aws:states:::lambda:invoke.waitForTaskToken"
            state["Arguments"] = {"FunctionName": self._silent, "Payload": {}}
            state["TimeoutSeconds"] = seconds

        return change

    def _function(self, name: str, source: str) -> str:
        made = self.app.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.12",
            Handler="index.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": function_bundle(source)},
            Timeout=30,
        )
        return str(made["FunctionArn"])

    def _make_fail(self, state: dict[str, Any]) -> None:
        arguments = state["Arguments"]
        for field, value in (
            ("FunctionName", self._failing),
            ("Bucket", "no-such-bucket"),
            ("TopicArn", "arn:aws:sns:us-east-1:000000000000:no-such-topic"),
        ):
            if field in arguments:
                arguments[field] = value
                return
        raise ValueError(f"no known way to make this state fail: {state['Resource']}")


def setting(field: str, value: Any) -> Change:
    """A change that sets one field of a state."""

    def change(state: dict[str, Any]) -> None:
        state[field] = copy.deepcopy(value)

    return change
