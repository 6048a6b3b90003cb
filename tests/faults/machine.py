"""Runs executions of the real state machines, in this process and without waiting.

The interpreter is that of the embedded cloud (moto's, with the corrections of
compilegate_localcloud/emulator/engine), the functions are the real ones. Only what they call is in
memory, and time passes where nothing happens. Of ``.venv-localcloud``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from compilegate.domain import naming
from compilegate_localcloud.emulator.replacements import stand_in
from tests.faults.world import Calls, Dead, Document, Saved, World, execution_arn, install

Program = Any
_ASL, _EXEC = "moto.stepfunctions.parser.asl", "state.exec"
REGION, ROLE = "us-east-1", "arn:aws:iam::111122223333:role/machine"


@dataclass
class Entry:
    """A state that is about to run: enough to run the machine on from here, in a copy."""

    state: str
    world: World
    input: Any
    variables: Document
    started: int


@dataclass
class Invocation:
    """A function that is called, with the world before it."""

    step: str
    event: Document
    world: World


# What a fault sees: the execution, what is about to happen, and ``before`` or ``after``.
Hook = Callable[["Execution", str, str], None]


@dataclass
class Execution:
    """One execution. ``hook`` sees every state as it is entered and every call of a service.

    ``program`` is the definition's name where it is not the machine's own.
    ``refuse`` maps an API of AWS (``s3.get_object``) to what it answers the machine, None where it
    answers as usual. ``waiting`` is what happens while a state waits for a token. ``kept``: each
    state and each function that is called is kept, with a copy of the world as it then was.
    """

    machine: str
    name: str
    given: Document
    world: World
    hook: Hook | None = None
    refuse: Callable[[str, Document], Exception | None] | None = None
    waiting: Callable[[Execution, str], None] | None = None
    kept: bool = False
    program: str = ""
    entries: list[Entry] = field(default_factory=list)
    state: str = ""
    invocation: Invocation | None = None
    status: str = "RUNNING"
    output: Any = None
    error: str = ""
    cause: str = ""
    env: Any = None
    passed: list[Any] = field(default_factory=list)
    started: int = 0

    @property
    def arn(self) -> str:
        return execution_arn(self.machine, self.name)

    def run(self, at: Entry | None = None) -> Execution:
        """From the start, or on from a state, to the end; the event of a bad end is delivered."""
        self.started = at.started if at else self.world.now
        worker = _worker(self)
        program = _program(self.program or self.machine)
        self.env = worker._get_evaluation_environment()
        _running.append(self)
        try:
            first = program.start_at
            if at is not None:
                program.start_at = SimpleNamespace(start_at_name=at.state)
                self.env.states.reset(input_value=at.input)
                for name, value in at.variables.items():
                    self.env.variable_store.set(name, value)
            try:
                program.eval(self.env)
            except _GoesOnAsBefore as before:
                end, saved = before.args[0]
                vars(self).update(end)
                self.world.become(saved)
            finally:
                program.start_at = first
        finally:
            _running.pop()
        if self.status == "RUNNING":
            self._conclude()
        if self.passed:
            end = {name: getattr(self, name) for name in _END}
            _ends.update(dict.fromkeys(self.passed, (end, self.world.saved())))
        return self

    def stop(self) -> None:
        """StopExecution: no further state runs; the function that runs goes on."""
        if self.status == "RUNNING":
            self.status, self.error = "ABORTED", "ABORTED"
            self.env.set_stop(stop_date=datetime.now(UTC), cause=None, error=None)
            self.detail = self.world.end(self.arn, "ABORTED", self.given)

    def _conclude(self) -> None:
        from moto.stepfunctions.parser.asl.eval import program_state as ends  # noqa: PLC0415

        state = self.env.program_state()
        if isinstance(state, ends.ProgramEnded):
            self.status, self.output = "SUCCEEDED", self.env.states.get_input()
        elif isinstance(state, ends.ProgramError):
            failure = state.error or {}
            self.status = "FAILED"
            self.error, self.cause = failure.get("error") or "", failure.get("cause") or ""
        else:
            raise TypeError(f"the interpreter ended in {type(state).__name__}")
        self.detail = self.world.end(
            self.arn, self.status, self.given, error=self.error, cause=self.cause
        )

    # What the interpreter meets

    def entered(self, state: str, env: Any) -> None:
        self.state = state
        if not env.is_frame():
            self._entered(state, env.states.get_input(), dict(env.variable_store._inner_scope))
        self._meets(f"{state}", "before")

    def _entered(self, state: str, given: Any, variables: Document) -> None:
        if self.kept:
            entry = Entry(state, self.world.copy(), given, _copied(variables), self.started)
            self.entries.append(entry)
        elif self.hook or self.refuse or self.passed:
            return  # what differs once seldom meets the same again
        rest = json.dumps([given, variables, self.given])
        key = (self.arn, self.program, self.started, self.waiting, state, rest,
               self.world.digest())  # fmt: skip
        if key in _ends and not self.kept:
            raise _GoesOnAsBefore(_ends[key])
        self.passed.append(key)

    def call(self, api: str, request: Document) -> Any:
        """A call that the machine itself makes."""
        refusal = self.refuse(api, request) if self.refuse else None
        if refusal is not None:
            raise refusal
        return getattr(self, "_" + api.replace(".", "_"))(request)

    def _lambda_invoke(self, request: Document) -> Document:
        step, payload = request["FunctionName"].rpartition(":")[2], json.loads(request["Payload"])
        self.invocation = Invocation(step, payload, self.world.copy()) if self.kept else None
        if "token" in payload:
            self.world.services.tokens.waiting.add(payload["token"])
        calls = Calls(lambda name, number, when: self._meets(f"{step} {number} {name}", when))
        failure = None
        try:
            answer: Any = self.world.step(step, payload, calls)
        except Dead:
            failure, answer = "Unhandled", {
                "errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 60 seconds",
            }  # fmt: skip
        except Exception as error:  # noqa: BLE001 - as the runtime reports it
            failure, answer = "Unhandled", {
                "errorType": type(error).__name__, "errorMessage": str(error),
            }  # fmt: skip
        self.invocation = None
        body = io.BytesIO(json.dumps(answer).encode())
        told = {"FunctionError": failure} if failure else {}
        return {"StatusCode": 200, "Payload": body, **told}

    def _s3_get_object(self, request: Document) -> Document:
        return {"Body": self.world.services.store.get(request["Key"]).decode()}

    def _sns_publish(self, request: Document) -> Document:
        self.world.messages.append(request)
        return {"MessageId": "m"}

    def _sagemaker_create_training_job(self, request: Document) -> Document:
        if request["TrainingJobName"] in self.world.services.jobs.descriptions:
            raise refusal("ValidationException", "Job name must be unique", "CreateTrainingJob")
        self._meets("CreateTrainingJob", "before")
        self.world.create(request)
        self._meets("CreateTrainingJob", "after")
        return {"TrainingJobArn": "a", "ResponseMetadata": {}}

    def _sagemaker_describe_training_job(self, request: Document) -> Document:
        return dict(self.world.services.jobs.describe(request["TrainingJobName"]))

    def _sagemaker_stop_training_job(self, request: Document) -> Document:
        self.world.services.jobs.stop(request["TrainingJobName"])
        return {}

    def job_ends(self, name: str) -> None:
        """The job that a state waits for has ended."""
        self.world.finish(name)
        self._meets("the job's end", "after")

    def _meets(self, what: str, when: str) -> None:
        if self.hook is not None:
            self.hook(self, what, when)


def refusal(code: str, message: str, operation: str, status: int = 400) -> ClientError:
    """What AWS answers a call that it refuses."""
    error = {"Error": {"Code": code, "Message": message},
             "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "r"}}  # fmt: skip
    return ClientError(error, operation)  # type: ignore[arg-type]


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


class _GoesOnAsBefore(BaseException):
    """An execution has entered a state as another did, which ended so."""


# The interpreter. Executions nest, they never run side by side.

_running: list[Execution] = []
# How executions ended that were once in a state: what follows from the same follows again.
_ends: dict[Any, tuple[Document, Saved]] = {}
_END = ("status", "output", "error", "cause", "detail")
_definitions: dict[str, str] = {}


def define(definitions: Mapping[str, Document]) -> None:
    """The definition of each machine, for executions in this process."""
    _install()
    _definitions.update({name: json.dumps(one) for name, one in definitions.items()})


@cache
def _program(machine: str) -> Program:
    from moto.stepfunctions.parser.asl.parse.asl_parser import (  # noqa: PLC0415
        AmazonStateLanguageParser,
    )

    return AmazonStateLanguageParser.parse(_definitions[machine])[0]


def _worker(execution: Execution) -> Any:
    from moto.stepfunctions.parser.asl.eval import evaluation_details as of  # noqa: PLC0415
    from moto.stepfunctions.parser.backend.execution_worker import (  # noqa: PLC0415
        ExecutionWorker,
    )

    machine = naming.machine_name("prod", execution.machine)
    started = datetime.fromtimestamp(execution.started, tz=UTC).isoformat()
    details = of.EvaluationDetails(
        of.AWSExecutionDetails(account="111122223333", region=REGION, role_arn=ROLE),
        of.ExecutionDetails(
            arn=execution.arn, name=execution.name, role_arn=ROLE, inpt=execution.given,
            start_time=started,
        ),
        of.StateMachineDetails(
            arn=execution.arn.replace(":execution:", ":stateMachine:").rpartition(":")[0],
            name=machine, typ="STANDARD", definition="",
        ),
    )  # fmt: skip
    return ExecutionWorker(details, None, None, {})


class _Client:
    """boto3's client of one service, for the execution that runs."""

    def __init__(self, service: str) -> None:
        self._service = service

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda **request: _running[-1].call(f"{self._service}.{operation}", request)


class _Job:
    """A job as the task that waits for it sees it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.finished = self

    def wait(self, _seconds: float) -> bool:
        _running[-1].job_ends(self._name)
        return True

    def describe(self) -> Document:
        described = _running[-1].world.services.jobs.describe(self._name)
        return {
            key: value.timestamp() if isinstance(value, datetime) else value
            for key, value in described.items()
        }


class _Training:
    """The emulator's SageMaker, of which the task asks for its job alone."""

    def job(self, _scope: tuple[str, str], name: str) -> _Job:
        return _Job(name)


class _Thread:
    """A thread whose work is done once it is started: nothing runs beside it."""

    def __init__(self, target: Callable[..., Any], args: tuple[Any, ...] = (), **_: Any) -> None:
        self.start = partial(target, *args)

    def join(self, timeout: float | None = None) -> None:
        """It has ended."""

    def is_alive(self) -> bool:
        return False


@cache
def _install() -> None:
    """As the emulator does (engine/loader.py), but for clients and the passing of time."""
    install()
    from compilegate_localcloud.emulator.engine.loader import _BatchJobStatus  # noqa: PLC0415

    stand_in("moto.batch.utils.JobStatus", _BatchJobStatus)
    from moto.stepfunctions.parser.asl.component.common.retry import (  # noqa: PLC0415
        retrier_decl,
    )
    from moto.stepfunctions.parser.asl.component.state.state import (  # noqa: PLC0415
        CommonStateField,
    )
    from moto.stepfunctions.parser.asl.component.state.wait.wait_function import (  # noqa: PLC0415
        wait_function,
    )
    from moto.stepfunctions.parser.asl.eval.callback import callback  # noqa: PLC0415
    from moto.stepfunctions.parser.asl.eval.environment import Environment  # noqa: PLC0415

    from compilegate_localcloud.emulator.engine import (  # noqa: PLC0415
        expressions,
        patches,
        sagemaker_task,
    )

    patches.client_for = sagemaker_task.client_for = lambda service, *_: _Client(service)  # type: ignore[assignment]
    patches.install()
    expressions._MOST_MILLISECONDS = 10**9  # a busy machine is no fault
    expressions.install()
    sagemaker_task.install(_Training())  # type: ignore[arg-type]

    def sleep(seconds: float) -> None:
        _running[-1].world.passes(seconds)

    def token() -> str:
        return _running[-1].world.token()

    import_module(f"{_ASL}.eval.states").long_uid = token
    Environment.begun_before = False  # of an emulator that was killed: here none is
    for name in ("program.program", f"{_EXEC}.state_map.iteration.inline_iteration_component"):
        import_module(f"{_ASL}.component.{name}").threading = SimpleNamespace(Thread=_Thread)
    import_module(f"{_ASL}.component.{_EXEC}.execute_state").Thread = _Thread
    retrier_decl.time = SimpleNamespace(sleep=sleep)
    wait_function.WaitFunction._wait_interval = lambda _wait, env, wait_seconds: sleep(wait_seconds)
    callback.CallbackEndpoint.wait = _answer_of_token
    details = CommonStateField._get_state_entered_event_details

    def entered(state: Any, env: Any) -> Any:
        answer = details(state, env)
        _running[-1].entered(state.name, env)
        return answer

    CommonStateField._get_state_entered_event_details = entered


def _answer_of_token(endpoint: Any, timeout: float | None = None) -> Any:
    """What was sent to a waiting state; None once its time is up."""
    from moto.stepfunctions.parser.asl.eval.callback.callback import (  # noqa: PLC0415
        CallbackOutcomeSuccess,
    )

    execution, token = _running[-1], endpoint.callback_id
    tokens = execution.world.services.tokens
    if token not in tokens.answers and execution.waiting is not None:
        execution.waiting(execution, token)
    if execution.env.is_running() and token not in tokens.answers:
        execution.world.passes(timeout or 0)
    tokens.waiting.discard(token)
    if token not in tokens.answers:
        return None
    return CallbackOutcomeSuccess(token, output=json.dumps(tokens.answers[token]))
