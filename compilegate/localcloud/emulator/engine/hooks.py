"""Puts the interpreter behind ministack's Step Functions API."""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import error_response_json, json_response

from compilegate.localcloud.emulator.engine.executions import Executions, definition_problem
from compilegate.localcloud.emulator.replacements import replace, upstream

_SERVICE = "ministack.services.stepfunctions"
_VALIDATE = f"{_SERVICE}._validate_definition_jsonata"
_PROVISIONED = "ministack.services.cloudformation.provisioners._sfn_definition"


def install(executions: Executions) -> None:
    """Replace what replacements.py lists of ministack's Step Functions."""
    replace(f"{_SERVICE}._run_execution", executions.run)
    _show_history_while_running(executions)
    _stop_interpreter_too(executions)
    for answer in ("success", "failure", "heartbeat"):
        _deliver_task_token(executions, answer)
    _refuse_invalid_definitions()
    _refuse_invalid_templates()


def _show_history_while_running(executions: Executions) -> None:
    target = f"{_SERVICE}._get_execution_history"
    original = upstream(target)

    def get_history(request: dict[str, Any]) -> Any:
        executions.refresh_history(request.get("executionArn", ""))
        return original(request)

    replace(target, get_history)


def _stop_interpreter_too(executions: Executions) -> None:
    target = f"{_SERVICE}._stop_execution"
    original = upstream(target)

    def stop(request: dict[str, Any]) -> Any:
        arn = request.get("executionArn", "")
        executions.refresh_history(arn)
        answer = original(request)
        executions.stop(arn, request.get("error"), request.get("cause"))
        return answer

    replace(target, stop)


def _deliver_task_token(executions: Executions, answer: str) -> None:
    target = f"{_SERVICE}._send_task_{answer}"
    original = upstream(target)

    def send(request: dict[str, Any]) -> Any:
        try:
            delivered = executions.answer_token(answer, request)
        except Exception as error:  # noqa: BLE001  # the interpreter has no common base class
            return error_response_json("TaskTimedOut", str(error), 400)
        return json_response({}) if delivered else original(request)

    replace(target, send)


def _refuse_invalid_definitions() -> None:
    original = upstream(_VALIDATE)

    def validate(definition: Any) -> Any:
        return definition_problem(definition) or original(definition)

    replace(_VALIDATE, validate)


def _refuse_invalid_templates() -> None:
    original = upstream(_PROVISIONED)

    def definition_of(properties: dict[str, Any]) -> Any:
        definition = original(properties)
        problem = upstream(_VALIDATE)(definition)
        if problem:
            raise ValueError(f"Resource handler returned message: {json.dumps(problem)}")
        return definition

    replace(_PROVISIONED, definition_of)
