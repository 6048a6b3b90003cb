"""Puts the interpreter behind ministack's Step Functions API.

Pinned to ministack 1.5.33: it has no plugin interface, but looks these functions up as module
globals at every call. Each replacement stands in its own function with its reason.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import error_response_json, json_response
from ministack.services import stepfunctions
from ministack.services.cloudformation import provisioners

from compilegate.localcloud.emulator.engine.executions import Executions


def install(executions: Executions) -> None:
    """Apply every change."""
    _run_with_interpreter(executions)
    _show_history_while_running(executions)
    _stop_interpreter_too(executions)
    _deliver_task_tokens(executions)
    _refuse_invalid_definitions(executions)
    _refuse_invalid_templates(executions)


def _run_with_interpreter(executions: Executions) -> None:
    """ministack's interpreter turns missing paths into null and never matches errors."""
    stepfunctions._run_execution = executions.run


def _show_history_while_running(executions: Executions) -> None:
    """The interpreter keeps the history of a running execution; the API must show it."""
    original = stepfunctions._get_execution_history

    def get_history(request: dict[str, Any]) -> Any:
        executions.refresh_history(request.get("executionArn", ""))
        return original(request)

    stepfunctions._get_execution_history = get_history


def _stop_interpreter_too(executions: Executions) -> None:
    """ministack only marks the execution; states in progress must be interrupted."""
    original = stepfunctions._stop_execution

    def stop(request: dict[str, Any]) -> Any:
        arn = request.get("executionArn", "")
        executions.refresh_history(arn)
        answer = original(request)
        executions.stop(arn, request.get("error"), request.get("cause"))
        return answer

    stepfunctions._stop_execution = stop


def _deliver_task_tokens(executions: Executions) -> None:
    """Tokens are the interpreter's, so answers to them must go there first."""

    def through(name: str, original: Any) -> Any:
        def send(request: dict[str, Any]) -> Any:
            try:
                taken = executions.answer_token(name, request)
            except Exception as error:  # noqa: BLE001  # the interpreter has no common base class
                return error_response_json("TaskTimedOut", str(error), 400)
            return json_response({}) if taken else original(request)

        return send

    for name in ("success", "failure", "heartbeat"):
        function = f"_send_task_{name}"
        setattr(stepfunctions, function, through(name, getattr(stepfunctions, function)))


def _refuse_invalid_definitions(executions: Executions) -> None:
    """A definition that cannot be parsed is refused when it is made, not when it runs."""
    original = stepfunctions._validate_definition_jsonata

    def validate(definition: Any) -> Any:
        problem = executions.problem_with(definition)
        return problem or original(definition)

    stepfunctions._validate_definition_jsonata = validate


def _refuse_invalid_templates(executions: Executions) -> None:
    """CloudFormation writes new state machines past the API and so past its checks."""
    original = provisioners._sfn_definition

    def definition_of(properties: dict[str, Any]) -> Any:
        definition = original(properties)
        problem = executions.problem_with(definition)
        problem = problem or stepfunctions._validate_definition_jsonata(definition)
        if problem:
            raise ValueError(f"Resource handler returned message: {json.dumps(problem)}")
        return definition

    provisioners._sfn_definition = definition_of
