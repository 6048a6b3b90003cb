"""The table of steps: each function of the deployment runs one use case.

The function of a step has the handler ``lambdas.handlers.STEP``. The runtime asks this module for
that name as it starts, and only then is the step's use case imported: a function loads its own
code and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from compilegate.adapters import wiring
from compilegate.domain.errors import CompilegateError, WorkloadLockedError
from compilegate.domain.naming import REFUSED
from lambdas.logs import logged

Answer = dict[str, Any]
Handler = Callable[[Mapping[str, Any], object], Answer]


@dataclass(frozen=True)
class Step:
    """``use_case`` is ``module:function`` below compilegate.usecases.

    It takes the event and the services. ``needs`` names what else it takes, each built by the
    function of that name in wiring. ``refuses`` is an error that is an answer to the state machine:
    raised, it would count as an error of the function and set off an alarm.
    """

    use_case: str
    needs: tuple[str, ...] = ()
    refuses: type[CompilegateError] | None = None


STEPS: Mapping[str, Step] = {
    # A trial, in the order of its state machine.
    "acquire_lock": Step("trial.lock:acquire_lock", refuses=WorkloadLockedError),
    "check_eligibility": Step("planning:check_eligibility"),
    "plan_trial": Step("planning:plan_trial"),
    "on_job_ended": Step("trial.on_job_ended:on_job_ended"),
    "judge_arms": Step("trial.judge_arms:judge_arms"),
    "open_canary": Step("canary:open_canary"),
    "record_decision": Step("trial.apply_flag:record_decision"),
    "ask_approval": Step("flag.approval:ask_approval"),
    "await_approval": Step("flag.approval:await_approval"),
    "close_approval": Step("flag.approval:close_approval"),
    "apply_flag": Step("trial.apply_flag:apply_flag"),
    "release_models": Step("canary:release_models"),
    "write_report": Step("reports:write_report"),
    "release_lock": Step("trial.lock:release_lock"),
    "abort_trial": Step("trial.abort_trial:abort_trial"),
    # A production run, in the order of its state machine.
    "begin_run": Step("production.begin_run:begin_run"),
    "build_request": Step("production.begin_run:build_request"),
    "record_run": Step("production.record_run:on_run_ended"),
    "review_production": Step("production.review_production:review_production"),
    # By the table's stream.
    "project": Step("fleet.project:project"),
    # By the clock.
    "sweep": Step("operations.sweep:daily", needs=("topic", "training_logs")),
    "weekly_digest": Step("operations.weekly_digest:send_digests", needs=("topic",)),
}


@cache
def __getattr__(name: str) -> Handler:
    """The handler of the step ``name``; raises AttributeError where there is none."""
    if name not in STEPS:
        raise AttributeError(f"lambdas.handlers has no step {name!r}")
    return _handler(name, STEPS[name])


def _handler(name: str, step: Step) -> Handler:
    module, function = step.use_case.split(":")
    use_case = getattr(import_module(f"compilegate.usecases.{module}"), function)
    refusal: tuple[type[CompilegateError], ...] = (step.refuses,) if step.refuses else ()

    def handle(event: Mapping[str, Any], _context: object) -> Answer:
        needed = {need: getattr(wiring, need)() for need in step.needs}
        try:
            with logged(name, event):
                answer: Answer = use_case(event, services=wiring.services(), **needed)
                return answer
        except refusal as error:
            return {REFUSED: {"error": type(error).__name__, "cause": str(error)}}

    return handle
