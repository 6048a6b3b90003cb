"""Executions in memory that together enter every state, and evaluate every expression in it.

``python -m tests.asl.executions``: standard input as that of ``tests.faults``; standard output gets
a line per evaluation that is kept, and one of the states. Of ``.venv-localcloud``.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compilegate.domain import naming
from compilegate_localcloud.emulator.engine import expressions
from tests.asl.definitions import states
from tests.asl.recordings import Recordings
from tests.faults import machine
from tests.faults.machine import Execution, define, refusal
from tests.faults.outside import ENDS
from tests.faults.rows import BROKEN, Undisturbed, undisturbed
from tests.faults.scenarios import after_trial, production, trial
from tests.faults.table import executions
from tests.faults.world import NAME, Document

CRASH, NO_CAPACITY = ENDS["is out of memory"], ENDS["gets no capacity"]
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
OLDER = {"framework": "pytorch", "version": "1.13.1", "python": "py39"}
MANAGED = {"name": "managed", "compiler": "sagemaker_training_compiler",
           "distribution": "pytorchxla",
           "framework": {"name": "pytorch", "version": "1.13.1", "python": "py39"}}  # fmt: skip
IMAGES = [{**OLDER, "uri": f"{REGISTRY}/native:1"},
          {**OLDER, "uri": f"{REGISTRY}/managed:1", "compiler": MANAGED["compiler"]}]  # fmt: skip
# What Step Functions may do and the interpreter does not: a stopped job comes back without an
# error, and a state's time is up. Name of the program, state, what is changed in it.
STOPPED = {"Output": "{% $merge([$states.result, {'TrainingJobStatus': 'Stopped'}]) %}"}
CHANGED: tuple[tuple[str, str, Callable[[Document], Document]], ...] = (
    ("speed job stopped", "SpeedTrain", lambda _: STOPPED),
    ("full run stopped", "QualityTrain", lambda _: STOPPED),
    ("speed job withdrawn", "SpeedLoadRequest",
     lambda state: {"Assign": {**state["Assign"], "request": {naming.WITHDRAWN: "now"}}}),
    ("speed job overdue", "SpeedTrain",
     lambda state: {"Retry": [], "Catch": [{**state["Catch"][-1], "ErrorEquals": ["States.ALL"]}]}),
)  # fmt: skip


def played(workload: Document, tasks: set[str]) -> None:
    """All of them: as they are, and with each of their tasks refused each time."""
    failed: set[str] = set()
    for of in (*executions(workload), *_others(workload), *_runs(workload)):
        for name in {point.state for point in of.points} & tasks - failed:
            _failing(of, name)
            failed.add(name)
        if of.name == "trial":
            _failing(of, "RecordDecision", "AbortTrial")
    for name, _, _ in CHANGED:
        one = trial(workload)
        one.program = name
        one.run()
    control = {**workload, "candidates": [MANAGED], "facts": {"images": IMAGES}}
    for nobodys in ("s0a0", "s0c0"):  # the baseline's, and the control's
        one = trial({**control, "training": {**workload["training"], "precision": "fp32"}})
        one.program, one.refuse = "speed job overdue", _never_started(f"-{nobodys}-")
        one.run()


def _others(workload: Document) -> Iterator[Undisturbed]:
    """Trials that end early or badly, and one that is started twice."""
    boosted = {**workload, "framework": {"name": "xgboost", "version": "1.7-1"}}
    yield undisturbed("ineligible", trial(boosted))
    yield undisturbed("above the cap", trial(workload, max_trial_usd=0.01))
    for number in (0, 2):  # a speed job, a full run
        one = trial(workload)
        one.world.trains = [*[{}] * number, CRASH]
        yield undisturbed(f"job {number} fails", one)
    again = Execution(one.machine, "by-hand", one.given, one.world)
    yield undisturbed("the same input again", again)


def _runs(workload: Document) -> Iterator[Undisturbed]:
    """Production runs that wait, fail, are somebody else's or nobody's."""
    for name, ends in (
        ("no capacity twice", [NO_CAPACITY, NO_CAPACITY]),
        ("the candidate crashes", [CRASH]),
        ("the baseline too", [CRASH, CRASH]),
    ):
        one = production(after_trial(workload))
        one.world.trains = ends
        yield undisturbed(name, one)
    yield undisturbed("a job of ours", _train(one, "job", job=_last_job(one)))
    _tag_as_team(one)
    yield undisturbed("a team's job", _train(one, "team", job=_last_job(one)))
    event = {"TrainingJobName": _last_job(one), "Tags": {naming.TAG_WORKLOAD: NAME}}
    yield undisturbed("its event", _train(one, "event", detail=event, workload=None))
    for number in range(2):
        again = _train(one, f"at-{number}", scheduled="2026-12-24T02:00:00Z", wait_seconds=5)
        yield undisturbed(f"scheduled {number}", again)
    yield undisturbed("unregistered", _train(one, "nobody", workload="nobody"))


def _train(one: Execution, name: str, **given: Any) -> Execution:
    """A further run in the world of this one."""
    return Execution(naming.TRAIN, name, {"workload": NAME, **given}, one.world)


def _last_job(one: Execution) -> str:
    return str(list(one.world.services.jobs.descriptions)[-1])


def _tag_as_team(one: Execution) -> None:
    """The last job is one that a team has started."""
    described = one.world.services.jobs.descriptions[_last_job(one)]
    described["Tags"] = [
        {"Key": naming.TAG_STAGE, "Value": naming.TEAM_STAGE},
        {"Key": naming.TAG_WORKLOAD, "Value": NAME}, {"Key": naming.TAG_ARM, "Value": "compile"},
    ]  # fmt: skip


def _failing(of: Undisturbed, *names: str) -> None:
    """The execution from the first of these states on, in all of which every call is refused."""
    entry = next(point.entry for point in of.points if point.state == names[0])
    one = of.execution
    again = Execution(one.machine, one.name, one.given, entry.world.copy(), waiting=one.waiting)

    def refuse(api: str, _request: Document) -> Exception | None:
        return refusal(*BROKEN[:2], api, BROKEN[2]) if again.state in names else None

    again.refuse = refuse
    again.run(entry)


def _never_started(part: str) -> Callable[[str, Document], Exception | None]:
    """Jobs with this in their name are refused."""

    def refuse(api: str, request: Document) -> Exception | None:
        matches = part in f"{request.get('TrainingJobName')}"
        return refusal(*BROKEN[:2], api, BROKEN[2]) if matches else None

    return refuse


def _define(definitions: Mapping[str, Document]) -> None:
    define(definitions)
    for program, name, change in CHANGED:
        changed = copy.deepcopy(definitions[naming.EVALUATE])
        state = dict(states(changed))[name]
        state |= change(state)
        define({program: changed})


def main() -> None:
    logging.disable(logging.CRITICAL)
    given, kept = json.load(sys.stdin), Recordings()
    entered: set[tuple[str, str]] = set()
    _define(given["definitions"])
    machine._install()
    evaluate, enter = expressions.evaluate, Execution.entered

    def evaluated(expression: str, scope: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
        key = machine._running[-1].machine, scope["context"]["State"]["Name"], expression
        try:
            value = evaluate(expression, scope, variables)
        except expressions.EvaluationError as error:
            kept.add(key, scope, variables, {"error": str(error)})
            raise
        kept.add(key, scope, variables, {"value": value})
        return value

    def seen(execution: Execution, state: str, env: Any) -> None:
        entered.add((execution.machine, state))
        enter(execution, state, env)

    expressions.evaluate, Execution.entered = evaluated, seen  # type: ignore[method-assign]
    tasks = {name for document in given["definitions"].values()
             for name, state in states(document) if state["Type"] == "Task"}  # fmt: skip
    played(given["workload"], tasks)
    sys.stdout.write(json.dumps(sorted(entered)) + "\n")
    for recorded in kept.by_key.values():
        for one in recorded:
            sys.stdout.write(json.dumps(vars(one), default=str) + "\n")


if __name__ == "__main__":
    main()
