"""What tasks of executions have answered: one that goes on gets it again in place of a call.

The interpreter keeps no position that another process could continue from. An execution of a killed
emulator runs anew from its input: tasks that had ended answer as they did then, from the journal, a
training job that a task waited for is waited for again, and any other task that was in the middle
is called again, as Step Functions itself does after a fault of the service.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from typing import Any

from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (  # noqa: E501
    StateTaskService,
)
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str

from compilegate_localcloud.emulator.journal.recorder import Recorder
from compilegate_localcloud.emulator.replacements import replace, upstream

TASK = "task"
_ASL = "moto.stepfunctions.parser.asl"
_ENVIRONMENT = f"{_ASL}.eval.environment.Environment"
_ITERATION = f"{_ASL}.component.state.exec.state_map.iteration.iteration_worker.IterationWorker"
_EVALUATE = (
    f"{_ASL}.component.state.exec.state_task.service.state_task_service.StateTaskService"
    "._eval_execution"
)
_WAIT = f"{_ASL}.component.state.wait.wait_function.wait_function.WaitFunction._eval_body"
_BEGUN: dict[str, Any] = {"begun": True}
Iterations = tuple[tuple[str, int], ...]


class Replay:
    """Outcomes by execution and place: iterations of maps around it, state, number of the visit."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._kept = {
            name: json.loads(content) for name, content in recorder.journal.read(TASK).items()
        }
        self._names: dict[str, set[str]] = {}
        for name in self._kept:
            self._names.setdefault(json.loads(name)[0], set()).add(name)
        self._visits: Counter[str] = Counter()
        interrupted = {arn for _, _, arn in recorder.interrupted}
        for execution in self._names.keys() - interrupted:  # killed just after their end
            self.forget(execution)

    def install(self) -> None:
        """Replace what replacements.py lists for this."""
        for opening in ("open_frame", "open_inner_frame"):
            _keep_iterations(f"{_ENVIRONMENT}.{opening}")
        _note_iterations()
        self._answer_tasks()
        self._shorten_waits()

    def forget(self, execution: str) -> None:
        """The execution has ended."""
        with self._lock:
            names = self._names.pop(execution, set())
            for name in names:
                self._kept.pop(name, None)
        self._recorder.drop(TASK, names)

    def _answer_tasks(self) -> None:
        original = upstream(_EVALUATE)

        def evaluate(task: Any, env: Any) -> None:
            place, kept = self._visit(env)
            if kept is not None and kept != _BEGUN:
                _answer_again(task, env, kept)
                return
            env.begun_before = kept == _BEGUN
            self._keep(place, _BEGUN)
            try:
                original(task, env)
            except Exception as error:
                if env.is_running():
                    self._keep(place, _failure(task._from_error(env=env, ex=error)))
                raise
            if env.is_running():
                self._keep(place, {"output": json.loads(to_json_str(env.stack[-1]))})

        replace(_EVALUATE, evaluate)

    def _shorten_waits(self) -> None:
        def wait(state: Any, env: Any) -> None:
            seconds = state._get_wait_seconds(env=env)
            place, kept = self._visit(env)
            if kept is None:
                self._keep(place, {"until": time.time() + seconds})
            else:
                # Whole ones: moto waits for what a fraction leaves again and again.
                seconds = max(math.ceil(float(kept["until"]) - time.time()), 0)
            state._wait_interval(env=env, wait_seconds=seconds)

        replace(_WAIT, wait)

    def _visit(self, env: Any) -> tuple[str, dict[str, Any] | None]:
        context = env.states.context_object.context_object_data
        execution, state = context["Execution"]["Id"], context["State"]["Name"]
        visited = json.dumps([execution, _iterations_of(env), state])
        with self._lock:
            number = self._visits[visited]
            self._visits[visited] += 1
            name = json.dumps([execution, _iterations_of(env), state, number])
            self._names.setdefault(execution, set()).add(name)
            return name, self._kept.pop(name, None)

    def _keep(self, place: str, outcome: dict[str, Any]) -> None:
        self._recorder.put(TASK, place, json.dumps(outcome).encode())
        if outcome != _BEGUN:  # that is written with what the task changes
            self._recorder.flush()


def _iterations_of(env: Any) -> Iterations:
    iterations: Iterations = getattr(env, "iterations", ())
    return iterations


def _keep_iterations(target: str) -> None:
    original = upstream(target)

    def opened(env: Any, event_history_context: Any = None) -> Any:
        frame = original(env, event_history_context)
        frame.iterations = _iterations_of(env)
        return frame

    replace(target, opened)


def _note_iterations() -> None:
    target = f"{_ITERATION}._eval_job"
    original = upstream(target)

    def evaluate(worker: Any, env: Any, job: Any) -> None:
        env.iterations = (*_iterations_of(env), (worker._work_name, job.job_index))
        original(worker, env, job)

    replace(target, evaluate)


def _failure(failure: Any) -> dict[str, Any]:
    return {
        "event": failure.event_type.value,
        "details": json.loads(to_json_str(failure.event_details)),
        "error": failure.error_name.error_name if failure.error_name else None,
    }


def _answer_again(task: Any, env: Any, kept: dict[str, Any]) -> None:
    """As the task ended: with the events of one that runs."""
    task.resource.eval(env=env)
    part = env.stack.pop()
    parameters, credentials = task._eval_parameters(env=env), task._eval_state_credentials(env=env)
    task._before_eval_execution(
        env=env, resource_runtime_part=part, raw_parameters=parameters,
        state_credentials=credentials,
    )  # fmt: skip
    if "output" not in kept:
        raise FailureEventException(_failure_event(env, kept))
    env.stack.append(kept["output"])
    StateTaskService._after_eval_execution(
        task, env=env, resource_runtime_part=part, normalised_parameters=parameters,
        state_credentials=credentials,
    )  # fmt: skip


def _failure_event(env: Any, kept: dict[str, Any]) -> Any:
    error = kept["error"]
    try:
        name: Any = StatesErrorName(typ=StatesErrorNameType.from_name(error))
    except ValueError:
        name = CustomErrorName(error)
    return FailureEvent(
        env=env,
        error_name=name if error is not None else None,
        event_type=HistoryEventType(kept["event"]),
        event_details=kept["details"],
    )
