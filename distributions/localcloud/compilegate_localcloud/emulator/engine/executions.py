"""Runs executions in moto's interpreter; ministack has the API and the records."""

from __future__ import annotations

import datetime
import functools
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ministack.core.responses import (
    error_response_json,
    get_account_id,
    get_region,
    json_response,
    now_iso,
    set_request_account_id,
    set_request_region,
)
from ministack.services import stepfunctions
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackOutcomeFailure,
    CallbackOutcomeSuccess,
)
from moto.stepfunctions.parser.asl.eval.evaluation_details import (
    AWSExecutionDetails,
    EvaluationDetails,
    ExecutionDetails,
    StateMachineDetails,
)
from moto.stepfunctions.parser.asl.eval.program_state import (
    ProgramEnded,
    ProgramError,
    ProgramTimedOut,
)
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

from compilegate_localcloud.emulator.engine.replay import Replay
from compilegate_localcloud.emulator.journal.recorder import Recorder
from compilegate_localcloud.emulator.journal.states import EXECUTIONS
from compilegate_localcloud.emulator.replacements import replace, upstream

log = logging.getLogger("compilegate.executions")
_CAUSE_MAX = 500
# Definitions of which the syntax tree is kept; a deployment has two.
_KEPT_TREES = 16
_UNSAFE_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")

_SERVICE = "ministack.services.stepfunctions"
_RESOURCE_ARN = "ministack.core.iam_actions.extract_resource_arn"
_VALIDATE = f"{_SERVICE}._validate_definition_jsonata"
_PROVISIONED = "ministack.services.cloudformation.provisioners._sfn_definition"


class _NoCommunication:
    """The interpreter notifies its own backend of the end; here the caller sees it return."""

    def terminated(self) -> None:
        """Nothing to do."""


@functools.lru_cache(_KEPT_TREES)
def _syntax_tree(definition: str) -> Any:
    """Parsing takes 120 ms for the largest machine of the app; nothing changes the tree."""
    return AmazonStateLanguageParser.parse(definition)[1]


class _Worker(ExecutionWorker):
    """Runs one execution, with a program of its own: its states keep what they do in it."""

    def _get_evaluation_entrypoint(self) -> Any:
        details = self._evaluation_details.state_machine_details
        return Preprocessor().visit(_syntax_tree(details.definition))


_make_worker: Any = _Worker  # its types are too narrow for what it takes


class Executions:
    """The executions that run now, by ARN; ``histories`` is a folder for what each has done."""

    def __init__(self, histories: Path, recorder: Recorder) -> None:
        self._recorder, self.replay = recorder, Replay(recorder)
        self._workers: dict[str, Any] = {}
        self._histories = histories
        self._answerable: dict[str, str] = {}  # machine by task token, of executions that ended

    def resume(self) -> None:
        """Run those that a killed emulator ran, each on a thread of its own."""
        for scoped in self._recorder.interrupted:
            threading.Thread(target=self._resume, args=scoped, daemon=True).start()

    def _resume(self, account: str, region: str, arn: str) -> None:
        set_request_account_id(account)
        set_request_region(region)
        self.run(arn)

    def run(self, arn: str) -> None:
        """Run an execution to its end; called on a thread of its own."""
        record = stepfunctions._executions.get(arn)
        machine = record and stepfunctions._state_machines.get(record["stateMachineArn"])
        if not machine:
            return
        worker = _make_worker(_details(record, machine), _NoCommunication(), None, {})
        self._workers[arn] = worker
        try:
            self._save_history(record)
            self._written()  # an event may have started it, without a request
            worker._execution_logic()
            self._conclude(record, worker)
        except Exception as error:  # a fault of the interpreter must end the execution
            log.exception("execution %s", arn)
            if record["status"] == "RUNNING":
                cause = f"{type(error).__name__}: {error}"
                stepfunctions._fail_execution(record, "States.Runtime", cause)
        finally:
            self._workers.pop(arn, None)
            tokens = list(worker.env.callback_pool_manager._pool) if worker.env else []
            self._answerable |= dict.fromkeys(tokens, record["stateMachineArn"])
            self._save_history(record)
            self.replay.forget(arn)
            self._written()

    def _written(self) -> None:
        self._recorder.note(EXECUTIONS)
        self._recorder.flush()

    def stop(self, arn: str, error: str | None, cause: str | None) -> None:
        """Interrupt what the execution is doing."""
        worker = self._workers.get(arn)
        if worker is not None and worker.env is not None:
            now = datetime.datetime.now(datetime.UTC)
            worker.env.set_stop(stop_date=now, cause=cause, error=error)
            self._save_history(stepfunctions._executions[arn])

    def refresh_history(self, arn: str) -> None:
        """Copy the interpreter's events into ministack's record."""
        worker = self._workers.get(arn)
        record = stepfunctions._executions.get(arn)
        if worker is not None and record is not None and record["status"] == "RUNNING":
            _copy_history(record, worker)

    def answer_token(self, name: str, request: dict[str, Any]) -> bool:
        """Hand a task token's answer to the execution that waits for it."""
        return any(
            _answer(worker.env.callback_pool_manager, name, request)
            for worker in list(self._workers.values())
            if worker.env is not None
        )

    def machine_of(self, token: str) -> str | None:
        """ARN of the state machine that gave out a task token, which permissions name."""
        for arn, worker in list(self._workers.items()):
            if worker.env is not None and worker.env.callback_pool_manager.get(token) is not None:
                return str(stepfunctions._executions[arn]["stateMachineArn"])
        return self._answerable.get(token)

    def _save_history(self, record: dict[str, Any]) -> None:
        self._histories.mkdir(parents=True, exist_ok=True)
        name = _UNSAFE_IN_FILE_NAMES.sub("-", record["name"])
        lines = [json.dumps(event, default=str) for event in record["events"]]
        (self._histories / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    @staticmethod
    def _conclude(record: dict[str, Any], worker: Any) -> None:
        if record["status"] != "RUNNING":  # stopped meanwhile; an abort wins over a late failure
            return
        _copy_history(record, worker)
        state = worker.env.program_state()
        record["stopDate"] = now_iso()
        if isinstance(state, ProgramEnded):
            output = json.dumps(worker.env.states.get_input(), default=str)
            record.update(status="SUCCEEDED", output=output)
        elif isinstance(state, ProgramTimedOut):
            record.update(status="TIMED_OUT", error="States.Timeout")
        elif isinstance(state, ProgramError):
            failure = state.error or {}
            record.update(status="FAILED", error=failure.get("error"), cause=failure.get("cause"))
        else:
            raise RuntimeError(  # noqa: TRY004  # a state of the program, not an argument
                f"the interpreter ended in state {type(state).__name__}"
            )
        stepfunctions._emit_execution_status_event(record)


def _details(record: dict[str, Any], machine: dict[str, Any]) -> Any:
    return EvaluationDetails(
        aws_execution_details=AWSExecutionDetails(
            account=get_account_id(), region=get_region(), role_arn=machine["roleArn"]
        ),
        execution_details=ExecutionDetails(
            arn=record["executionArn"],
            name=record["name"],
            role_arn=machine["roleArn"],
            inpt=json.loads(record["input"] or "{}"),
            start_time=record["startDate"],
        ),
        state_machine_details=StateMachineDetails(
            arn=record["stateMachineArn"],
            name=machine["name"],
            typ=machine["type"],
            definition=machine["definition"],
        ),
    )


def _copy_history(record: dict[str, Any], worker: Any) -> None:
    if worker.env is not None:
        record["events"] = worker.env.event_manager.get_event_history()


def _answer(pool: Any, name: str, request: dict[str, Any]) -> bool:
    token = request["taskToken"]
    if name == "heartbeat":
        return bool(pool.heartbeat(token))
    if name == "success":
        outcome = CallbackOutcomeSuccess(callback_id=token, output=request.get("output", "{}"))
        return bool(pool.notify(token, outcome))
    error, cause = request.get("error"), request.get("cause")
    return bool(pool.notify(token, CallbackOutcomeFailure(token, error=error, cause=cause)))


def definition_problem(definition: object) -> str | None:
    """What is wrong with it, in the words of InvalidDefinition; None if nothing is."""
    if not isinstance(definition, str):
        return None
    try:
        document = json.loads(definition)
        _syntax_tree(definition)
    except Exception as error:  # noqa: BLE001  # the parser raises whatever its grammar meets
        return f"Invalid State Machine Definition: '{type(error).__name__}: {error}'"[:_CAUSE_MAX]
    dangling = next(_dangling(document, ""), None)
    return f"Invalid State Machine Definition: '{dangling}'" if dangling else None


def _dangling(machine: dict[str, Any], path: str) -> Iterator[str]:
    """Transitions to states that do not exist, which the parser accepts."""
    states = machine["States"]
    if machine["StartAt"] not in states:
        yield _missing(machine["StartAt"], f"{path}/StartAt")
    for name, state in states.items():
        choices = [*state.get("Catch", []), *state.get("Choices", [])]
        targets = [state.get("Next"), state.get("Default"), *(c.get("Next") for c in choices)]
        for target in targets:
            if target and target not in states:
                yield _missing(target, f"{path}/States/{name}")
        inner = [*state.get("Branches", []), state.get("ItemProcessor"), state.get("Iterator")]
        for branch in inner:
            if branch:
                yield from _dangling(branch, f"{path}/States/{name}")


def _missing(target: str, place: str) -> str:
    return f"MISSING_TRANSITION_TARGET: Missing 'Next' target: {target} at {place}"


def install(executions: Executions) -> None:
    """Replace what replacements.py lists of ministack's Step Functions."""
    replace(f"{_SERVICE}._run_execution", executions.run)
    executions.replay.install()
    _show_running_executions(executions)
    for answer in ("success", "failure", "heartbeat"):
        _deliver_task_token(executions, answer)
    _name_machines_of_tokens(executions)
    _refuse_invalid_definitions()


def _name_machines_of_tokens(executions: Executions) -> None:
    """A permission to answer a task token names the state machine that gave it out."""
    original = upstream(_RESOURCE_ARN)

    def resource_arn(service: str, *arguments: Any) -> Any:
        arn = original(service, *arguments)
        body = arguments[3] or b""
        if service != "states" or arn != "*" or b'"taskToken"' not in body:
            return arn
        return executions.machine_of(str(json.loads(body)["taskToken"])) or arn

    replace(_RESOURCE_ARN, resource_arn)


def _show_running_executions(executions: Executions) -> None:
    """A running execution's history is the interpreter's; stopping it interrupts its states."""
    history, stop = f"{_SERVICE}._get_execution_history", f"{_SERVICE}._stop_execution"
    original_history, original_stop = upstream(history), upstream(stop)

    def get_history(request: dict[str, Any]) -> Any:
        executions.refresh_history(request.get("executionArn", ""))
        return original_history(request)

    def stop_execution(request: dict[str, Any]) -> Any:
        arn = request.get("executionArn", "")
        executions.refresh_history(arn)
        answer = original_stop(request)
        executions.stop(arn, request.get("error"), request.get("cause"))
        return answer

    replace(history, get_history)
    replace(stop, stop_execution)


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
    """In the API, and in CloudFormation, which creates state machines past it."""
    validate_upstream, provision = upstream(_VALIDATE), upstream(_PROVISIONED)

    def validate(definition: Any) -> Any:
        return definition_problem(definition) or validate_upstream(definition)

    def definition_of(properties: dict[str, Any]) -> Any:
        definition = provision(properties)
        problem = validate(definition)
        if problem:
            raise ValueError(f"Resource handler returned message: {json.dumps(problem)}")
        return definition

    replace(_VALIDATE, validate)
    replace(_PROVISIONED, definition_of)
