"""The executions that recordings are made of: together they enter every state that can be entered.

Most run side by side. Those of ``ONE_BY_ONE`` have failures injected, which the next training job
meets, whosever it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from compilegate.localcloud.failures import Failure, inject
from compilegate.usecases.answer_approval import answer_approval
from tests.asl.stage import PATIENCE_SECONDS, Stage, setting
from tests.e2e.production import Production, iso
from tests.e2e.test_approval import ANA, REQUIRED, services, wait_until_asked
from tests.e2e.test_canary import wait_for_round
from tests.e2e.test_own_nodes import IMAGES, MANAGED
from tests.e2e.test_production import start_team_job, wait_for_training
from tests.e2e.test_watch_production import Promoted

Scenario = Callable[[Stage], object]
CANDIDATE, COMPILED = 1, "compile"
ABSENT = [
    {"name": "compile", "compiler": "torch_compile"},
    {"name": "absent", "entry_point": "absent.py"},
]
INELIGIBLE = {"framework": "xgboost"}
CONTROL = {
    "candidates": [MANAGED], "facts": IMAGES, "precision": "fp32",
    "profile": {"compile_seconds": 20}, "speeds": "managed=1.5,managed-native=0.9",
}  # fmt: skip
STOPPED = "{% $merge([$states.result, {'TrainingJobStatus': 'Stopped'}]) %}"
CANARY = {"policy": {"quality_runs": "canary"}}


def trial(name: str, **settings: object) -> Scenario:
    """A trial of the deployed machine."""
    return lambda stage: stage.trial(name, **settings)


def failing(*names: str, **settings: object) -> Scenario:
    """A trial in which the calls of these states fail."""
    workload = f"fails-{names[0].lower()}"
    return lambda stage: stage.trial(workload, stage.failing("evaluate", *names), **settings)


def run(name: str, *failing_states: str, flag_on: bool = False, **knobs: object) -> Scenario:
    """A production run, in which the calls of these states fail."""

    def scenario(stage: Stage) -> None:
        workload = Production(stage.app, name, knobs)
        if flag_on:
            workload.promote()
        stage.train(workload, stage.failing("train", *failing_states) if failing_states else None)

    return scenario


def injected(failure: Failure, scenario: Scenario, count: int = 1) -> Scenario:
    """A scenario whose first training jobs, ``count`` of them, meet a failure."""

    def run_it(stage: Stage) -> None:
        inject(stage.app.cloud.state(), failure, count=count)
        scenario(stage)
        inject(stage.app.cloud.state(), failure, count=0)

    return run_it


def _overdue(stage: Stage) -> None:
    machine = stage.changed("evaluate", {"SpeedTrain": setting("TimeoutSeconds", 1)})
    stage.trial("speed-overdue", machine)


def _stopped_without_error(state: str, stage: Stage) -> None:
    """The embedded cloud makes an error of a stopped job; Step Functions may not."""
    machine = stage.changed("evaluate", {state: setting("Output", STOPPED)})
    stage.trial(f"stopped-{state.lower()}", machine)


def _overdue_control(stage: Stage) -> None:
    overdue = "{% $exists($run.control) ? 1 : 3600 %}"
    machine = stage.changed("evaluate", {"SpeedTrain": setting("TimeoutSeconds", overdue)})
    stage.trial("control-overdue", machine, **CONTROL)


def _nothing_explains_a_failed_job(stage: Stage) -> None:
    machine = stage.failing("evaluate", "SpeedRunFailed")
    stage.trial("speed-unexplained", machine, candidates=ABSENT)


def _approved(stage: Stage) -> None:
    running = stage.evaluate("approved", policy=REQUIRED)
    wait_until_asked(running, PATIENCE_SECONDS)
    answer_approval(running.workload, ANA, approved=True, services=services(stage.app))
    running.wait(PATIENCE_SECONDS)


def _silence(stage: Stage) -> None:
    machine = stage.changed("evaluate", {"AwaitApproval": setting("TimeoutSeconds", 2)})
    stage.trial("silence", machine, policy=REQUIRED)


def _failing_approval(state: str, stage: Stage) -> None:
    machine = stage.failing("evaluate", state)
    running = stage.evaluate(f"fails-{state.lower()}", machine, policy=REQUIRED)
    if state in ("TellApproval", "CloseApproval"):
        wait_until_asked(running, PATIENCE_SECONDS)
        answer_approval(running.workload, ANA, approved=True, services=services(stage.app))
    running.wait(PATIENCE_SECONDS)


def _canary(stage: Stage) -> None:
    production = Production(stage.app, "canary")
    stage.train(production)
    running = stage.app.start(production.document() | CANARY)
    while wait_for_round(production, running, PATIENCE_SECONDS):
        stage.train(production)
    running.wait(PATIENCE_SECONDS)


def _reverted(stage: Stage) -> None:
    settings = {"policy": {"probation_runs": 12}, "production_shift": 0.2}
    running = stage.evaluate("reverted", **settings)
    running.wait(PATIENCE_SECONDS)
    workload = Promoted(stage.app, running.workload, running=running)
    for _ in range(12):
        stage.train(workload)
        if not workload.flag()["enabled"]:
            return


def _failing_canary(stage: Stage) -> None:
    production = Production(stage.app, "canary-fails")
    stage.train(production)
    machine = stage.failing("evaluate", "CanaryRuns")
    stage.app.start(production.document() | CANARY, machine).wait(PATIENCE_SECONDS)


def _locked_then_aborted(stage: Stage) -> None:
    first = stage.evaluate("locked", hang=COMPILED)
    first.wait_for_full_run(CANDIDATE, PATIENCE_SECONDS)
    stage.trial(first.workload)
    stage.app.client("stepfunctions").stop_execution(executionArn=first.execution)
    first.wait(PATIENCE_SECONDS)


def _stopped_job(stage: Stage) -> None:
    running = stage.evaluate("job-stopped", hang=COMPILED)
    job = running.wait_for_full_run(CANDIDATE, PATIENCE_SECONDS)
    stage.app.client("sagemaker").stop_training_job(TrainingJobName=job)
    running.wait(PATIENCE_SECONDS)


def _duplicate(stage: Stage) -> None:
    workload, at = Production(stage.app, "duplicate"), iso(time.time())
    executions = [workload.start(scheduled=at) for _ in range(2)]
    for execution in executions:
        workload.wait(execution, PATIENCE_SECONDS)


def _stopped_run(stage: Stage) -> None:
    workload = Production(stage.app, "run-stopped", {"hang": "baseline"})
    execution = workload.start()
    job = wait_for_training(stage.app, workload, PATIENCE_SECONDS)
    stage.app.client("sagemaker").stop_training_job(TrainingJobName=job)
    workload.wait(execution, PATIENCE_SECONDS)


def _overdue_run(stage: Stage) -> None:
    workload = Production(stage.app, "run-overdue", {"hang": "baseline"})
    stage.train(workload, stage.changed("train", {"Train": setting("TimeoutSeconds", 1)}))


def _team_job(stage: Stage) -> None:
    workload = Production(stage.app, "team")
    stage.train(workload)
    (own,) = workload.runs()
    job = start_team_job(stage.app, workload, own.job)
    workload.wait_for_runs(2, PATIENCE_SECONDS)
    stage.train(workload, job=job)
    stage.train(workload, stage.failing("train", "RecordTeamRun"), job=job)


def _unregistered(stage: Stage) -> None:
    workload = Production(stage.app, "forgotten")
    workload.name = "never-registered"
    stage.train(workload)
    stage.train(workload, stage.failing("train", "NotifyBroken"))


def _without_capacity(stage: Stage) -> None:
    stage.train(Production(stage.app, "waits"), wait_seconds=1)


def _without_capacity_or_message(stage: Stage) -> None:
    machine = stage.failing("train", "TellOfWaiting")
    stage.train(Production(stage.app, "waits-untold"), machine, wait_seconds=1)


SIDE_BY_SIDE: dict[str, Scenario] = {
    "promoted": trial("promoted"),
    "stays off": trial("stays-off", speedup=0.9),
    "ineligible": trial("ineligible", **INELIGIBLE),
    "above the cap": trial("above-cap", policy={"max_trial_usd": 0.01}),
    "candidate crashes": trial("crash", crash=COMPILED),
    "one speed job fails": trial("speed-fails", candidates=ABSENT),
    "control": trial("control", **CONTROL),
    "control overdue": _overdue_control,
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
    "speed job overdue": _overdue,
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
        for state in ("ReadFlag", "BuildRequest", "LoadRequest", "RecordRun", "Watch")
    },
    "TellOfWatch fails": run("fails-tellofwatch", "TellOfWatch", "Watch"),
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
    "throttled run": injected(Failure.THROTTLED, run("throttled-run")),
    "run without capacity": injected(Failure.NO_CAPACITY, _without_capacity, count=2),
    "run without capacity or message": injected(Failure.NO_CAPACITY, _without_capacity_or_message),
}
