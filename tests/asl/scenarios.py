"""The executions that recordings are made of: together they enter every state that can be entered.

Most run side by side. Those of ``ONE_BY_ONE`` have failures injected, which the next training job
meets, whosever it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.usecases.flag.approval import answer_approval
from distributions.localcloud.tests.failures import Failure, inject
from tests.asl.scenario_runner import PATIENCE_SECONDS, ScenarioRunner, setting
from tests.e2e.production import Production, Promoted, iso
from tests.e2e.test_approval import ANA, REQUIRED, services, wait_until_asked
from tests.e2e.test_canary import wait_for_round
from tests.e2e.test_own_nodes import IMAGES, MANAGED
from tests.e2e.test_production import start_team_job, wait_for_training

Scenario = Callable[[ScenarioRunner], object]
CANDIDATE, COMPILED = 1, "compile"
ABSENT = [
    {"name": "compile", "compiler": "torch_compile"},
    {"name": "absent", "entry_point": "absent.py"},
]
INELIGIBLE = {"framework": {"name": "xgboost", "version": "1.7-1"}}
CONTROL = {
    "candidates": [MANAGED], "facts": IMAGES, "precision": "fp32",
    "profile": {"compile_seconds": 20}, "speeds": "managed=1.5,managed-native=0.9",
}  # fmt: skip
STOPPED = "{% $merge([$states.result, {'TrainingJobStatus': 'Stopped'}]) %}"
CANARY = {"policy": {"quality_runs": "canary"}}


def trial(name: str, **settings: object) -> Scenario:
    """A trial of the deployed machine."""
    return lambda runner: runner.trial(name, **settings)


def failing(*names: str, **settings: object) -> Scenario:
    """A trial in which the calls of these states fail."""
    workload = f"fails-{names[0].lower()}"
    return lambda runner: runner.trial(workload, runner.failing("evaluate", *names), **settings)


def run(name: str, *failing_states: str, flag_on: bool = False, **knobs: object) -> Scenario:
    """A production run, in which the calls of these states fail."""

    def scenario(runner: ScenarioRunner) -> None:
        workload = Production(runner.app, name, knobs)
        if flag_on:
            workload.promote()
        runner.train(workload, runner.failing("train", *failing_states) if failing_states else None)

    return scenario


def injected(failure: Failure, scenario: Scenario, count: int = 1) -> Scenario:
    """A scenario whose first training jobs, ``count`` of them, meet a failure."""

    def run_it(runner: ScenarioRunner) -> None:
        inject(runner.app.cloud.state(), failure, count=count)
        scenario(runner)
        inject(runner.app.cloud.state(), failure, count=0)

    return run_it


def _overdue(runner: ScenarioRunner) -> None:
    """The control's job first, which the trial can do without, then the others."""
    overdue = runner.overdue("{% $exists($run.control) ? 1 : 5 %}")
    runner.trial("overdue", runner.changed("evaluate", {"SpeedTrain": overdue}), **CONTROL)


def _stopped_without_error(state: str, runner: ScenarioRunner) -> None:
    """The embedded cloud makes an error of a stopped job; Step Functions may not."""
    machine = runner.changed("evaluate", {state: setting("Output", STOPPED)})
    runner.trial(f"stopped-{state.lower()}", machine)


def _withdrawn_full_runs(runner: ScenarioRunner) -> None:
    """One at a time, as where the quota holds one job: the others are not started any more."""
    machine = runner.changed("evaluate", {"QualityRuns": setting("MaxConcurrency", 1)})
    runner.trial("withdrawn", machine, crash=COMPILED)


def _withdrawn_speed_jobs(runner: ScenarioRunner) -> None:
    def withdraw(state: dict[str, Any]) -> None:
        state["Assign"]["request"] = f"{{% {{'{naming.WITHDRAWN}': 'now'}} %}}"

    machine = runner.changed("evaluate", {"SpeedLoadRequest": withdraw})
    runner.trial("speed-withdrawn", machine)


def _nothing_explains_a_failed_job(runner: ScenarioRunner) -> None:
    machine = runner.failing("evaluate", "SpeedRunFailed")
    runner.trial("speed-unexplained", machine, candidates=ABSENT)


def _approved(runner: ScenarioRunner) -> None:
    running = runner.evaluate("approved", policy=REQUIRED)
    wait_until_asked(running, PATIENCE_SECONDS)
    answer_approval(running.workload, ANA, approved=True, services=services(runner.app))
    running.wait(PATIENCE_SECONDS)


def _silence(runner: ScenarioRunner) -> None:
    machine = runner.changed("evaluate", {"AwaitApproval": setting("TimeoutSeconds", 2)})
    runner.trial("silence", machine, policy=REQUIRED)


def _failing_approval(state: str, runner: ScenarioRunner) -> None:
    machine = runner.failing("evaluate", state)
    running = runner.evaluate(f"fails-{state.lower()}", machine, policy=REQUIRED)
    if state in ("TellApproval", "CloseApproval"):
        wait_until_asked(running, PATIENCE_SECONDS)
        answer_approval(running.workload, ANA, approved=True, services=services(runner.app))
    running.wait(PATIENCE_SECONDS)


def _canary(runner: ScenarioRunner) -> None:
    production = Production(runner.app, "canary")
    runner.train(production)
    running = runner.app.start(production.document() | CANARY)
    while wait_for_round(production, running, PATIENCE_SECONDS):
        runner.train(production)
    running.wait(PATIENCE_SECONDS)


def _reverted(runner: ScenarioRunner) -> None:
    settings = {"policy": {"probation_runs": 12}, "production_shift": 0.2}
    running = runner.evaluate("reverted", **settings)
    running.wait(PATIENCE_SECONDS)
    workload = Promoted(runner.app, running.workload, running=running)
    for _ in range(12):
        runner.train(workload)
        if not workload.flag()["enabled"]:
            return


def _failing_canary(runner: ScenarioRunner) -> None:
    production = Production(runner.app, "canary-fails")
    runner.train(production)
    machine = runner.failing("evaluate", "CanaryRuns")
    runner.app.start(production.document() | CANARY, machine).wait(PATIENCE_SECONDS)


def _locked_then_aborted(runner: ScenarioRunner) -> None:
    first = runner.evaluate("locked", hang=COMPILED)
    first.wait_for_full_run(CANDIDATE, PATIENCE_SECONDS)
    runner.trial(first.workload)
    runner.app.client("stepfunctions").stop_execution(executionArn=first.execution)
    first.wait(PATIENCE_SECONDS)


def _stopped_job(runner: ScenarioRunner) -> None:
    running = runner.evaluate("job-stopped", hang=COMPILED)
    job = running.wait_for_full_run(CANDIDATE, PATIENCE_SECONDS)
    runner.app.client("sagemaker").stop_training_job(TrainingJobName=job)
    running.wait(PATIENCE_SECONDS)


def _duplicate(runner: ScenarioRunner) -> None:
    workload, at = Production(runner.app, "duplicate"), iso(time.time())
    executions = [workload.start(scheduled=at) for _ in range(2)]
    for execution in executions:
        workload.wait(execution, PATIENCE_SECONDS)


def _stopped_run(runner: ScenarioRunner) -> None:
    workload = Production(runner.app, "run-stopped", {"hang": "baseline"})
    execution = workload.start()
    job = wait_for_training(runner.app, workload, PATIENCE_SECONDS)
    runner.app.client("sagemaker").stop_training_job(TrainingJobName=job)
    workload.wait(execution, PATIENCE_SECONDS)


def _overdue_run(runner: ScenarioRunner) -> None:
    workload = Production(runner.app, "run-overdue", {"hang": "baseline"})
    runner.train(workload, runner.changed("train", {"Train": setting("TimeoutSeconds", 1)}))


def _team_job(runner: ScenarioRunner) -> None:
    workload = Production(runner.app, "team")
    runner.train(workload)
    (own,) = workload.runs()
    job = start_team_job(runner.app, workload, own.job)
    workload.wait_for_runs(2, PATIENCE_SECONDS)
    runner.train(workload, job=job)
    runner.train(workload, runner.failing("train", "RecordTeamRun"), job=job)


def _unregistered(runner: ScenarioRunner) -> None:
    workload = Production(runner.app, "forgotten")
    workload.name = "never-registered"
    runner.train(workload)
    runner.train(workload, runner.failing("train", "NotifyBroken"))


def _without_capacity(runner: ScenarioRunner) -> None:
    runner.train(Production(runner.app, "waits"), wait_seconds=1)


def _without_capacity_or_message(runner: ScenarioRunner) -> None:
    machine = runner.failing("train", "TellOfWaiting")
    runner.train(Production(runner.app, "waits-untold"), machine, wait_seconds=1)


SIDE_BY_SIDE: dict[str, Scenario] = {
    "promoted": trial("promoted"),
    "stays off": trial("stays-off", speedup=0.9),
    "ineligible": trial("ineligible", **INELIGIBLE),
    "above the cap": trial("above-cap", policy={"max_trial_usd": 0.01}),
    "candidate crashes": trial("crash", crash=COMPILED),
    "one speed job fails": trial("speed-fails", candidates=ABSENT),
    "control": trial("control", **CONTROL),
    **{
        f"{state} fails": failing(state)
        for state in ("AcquireLock", "CheckEligibility", "PlanTrial", "JudgeArms",
                      "SpeedLoadRequest", "QualityLoadRequest", "QualityRunCompleted")
    },
    **{
        f"{state} fails": failing(state, **INELIGIBLE)
        for state in ("RecordDecision", "ApplyFlag", "ReleaseModels", "WriteReport", "Notify",
                      "ReleaseLock")
    },
    "cleaning up fails": failing("AbortTrial", "RecordDecision", **INELIGIBLE),
    "QualityRunFailed fails": failing("QualityRunFailed", crash=COMPILED),
    "SpeedRunFailed fails": _nothing_explains_a_failed_job,
    "full runs withdrawn": _withdrawn_full_runs,
    "speed jobs withdrawn": _withdrawn_speed_jobs,
    "speed jobs overdue": _overdue,
    "speed job is stopped": partial(_stopped_without_error, "SpeedTrain"),
    "full run is stopped": partial(_stopped_without_error, "QualityTrain"),
    "approved": _approved,
    "silence": _silence,
    **{
        f"{state} fails": partial(_failing_approval, state)
        for state in ("AskApproval", "TellApproval", "AwaitApproval", "CloseApproval")
    },
    "canary": _canary,
    "reverted": _reverted,
    "CanaryRuns fails": _failing_canary,
    "locked, then aborted": _locked_then_aborted,
    "job stopped": _stopped_job,
    "baseline run": run("baseline-run"),
    "candidate run": run("candidate-run", flag_on=True),
    "candidate run crashes": run("candidate-crashes", flag_on=True, crash=COMPILED),
    "baseline run crashes": run("baseline-crashes", crash="baseline"),
    **{
        f"{state} fails": run(f"fails-{state.lower()}", state)
        for state in ("BeginRun", "BuildRequest", "LoadRequest", "RecordRun", "ReviewProduction")
    },
    "TellOfReview fails": run("fails-tellofreview", "TellOfReview", "ReviewProduction"),
    "NotifyFailure fails": run("fails-notifyfailure", "NotifyFailure", crash="baseline"),
    "duplicate": _duplicate,
    "run stopped": _stopped_run,
    "run overdue": _overdue_run,
    "team job": _team_job,
    "unregistered": _unregistered,
}  # fmt: skip
ONE_BY_ONE: dict[str, Scenario] = {
    "throttled trial": injected(Failure.THROTTLED, trial("throttled", speedup=0.9)),
    "trial without capacity": injected(Failure.NO_CAPACITY, trial("no-capacity", speedup=0.9)),
    "quota in use": injected(Failure.LIMIT_EXCEEDED, trial("quota-in-use", speedup=0.9)),
    "throttled run": injected(Failure.THROTTLED, run("throttled-run")),
    "run without capacity": injected(Failure.NO_CAPACITY, _without_capacity, count=2),
    "run without capacity or message": injected(Failure.NO_CAPACITY, _without_capacity_or_message),
}
