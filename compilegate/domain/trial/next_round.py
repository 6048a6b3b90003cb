"""The jobs of a trial's next round, each with its complete CreateTrainingJob request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import NextStep, QualityStep, SpeedStep
from compilegate.domain.planning.speed_jobs import arm_of, controls_of
from compilegate.domain.request.build import quality_request, speed_request
from compilegate.domain.request.sections import JobContext
from compilegate.domain.trial.evidence import TrialEvidence
from compilegate.domain.trial.limits import (
    affordable_seconds,
    canary_timeout_seconds,
    chosen_speed_jobs,
    jobs_at_once,
)


@dataclass(frozen=True)
class JobRequest:
    """One job to start; the state machine continues without a control's."""

    run: str
    request: Mapping[str, Any]
    is_control: bool


@dataclass(frozen=True)
class NextRound:
    """The jobs of a round, and how many of them run at the same time."""

    stage: str
    jobs: tuple[JobRequest, ...]
    at_once: int


@dataclass(frozen=True)
class CanaryRequest:
    """A round that production makes: the runs in the judge's order."""

    round: int
    step: QualityStep
    timeout_seconds: int

    def to_dict(self) -> dict[str, Any]:
        """What the state machine asks production for."""
        runs = [{"arm": run.arm, "seed": run.seed} for run in self.step.runs]
        return {"round": self.round, "runs": runs, "timeout_seconds": self.timeout_seconds}


def next_round(
    step: NextStep, evidence: TrialEvidence, context: JobContext, *, number: int, now: int
) -> NextRound | CanaryRequest:
    """What the judge's next step takes; ``number`` is the round's."""
    if isinstance(step, QualityStep) and step.is_canary:
        return CanaryRequest(number, step, canary_timeout_seconds(step, evidence, now))
    if isinstance(step, SpeedStep):
        requests = _speed_requests(step, evidence, context, number)
    elif isinstance(step, QualityStep):
        requests = _quality_requests(step, evidence, context, number)
    else:
        raise TypeError(f"a trial has no round of stage {step.stage}")
    arms = evidence.plan.arms
    limits = affordable_seconds(step, evidence)
    runs = {run: naming.parse_run(run) for run in requests}
    return NextRound(
        stage=step.stage,
        jobs=tuple(
            JobRequest(run, _limited(request, seconds), bool(controls_of(runs[run], arms)))
            for (run, request), seconds in zip(requests.items(), limits, strict=True)
        ),
        at_once=jobs_at_once([arm_of(run, arms).cluster for run in runs.values()], evidence.plan),
    )


def _limited(request: Mapping[str, Any], seconds: int) -> dict[str, Any]:
    """The request with no more time than the rest of the budget allows."""
    limits = request["StoppingCondition"]
    most = min(limits["MaxRuntimeInSeconds"], seconds)
    return {**request, "StoppingCondition": {**limits, "MaxRuntimeInSeconds": most}}


def _speed_requests(
    step: SpeedStep, evidence: TrialEvidence, context: JobContext, number: int
) -> dict[str, dict[str, Any]]:
    return {
        (run := job.run(number)): speed_request(
            evidence.workload,
            job.arms,
            run=run,
            first_block=job.first_block,
            blocks=job.blocks,
            steps=step.steps,
            context=context,
        )
        for job in chosen_speed_jobs(step, evidence)
    }


def _quality_requests(
    step: QualityStep, evidence: TrialEvidence, context: JobContext, number: int
) -> dict[str, dict[str, Any]]:
    """A replicate's number counts the full runs that its arm has behind it."""
    arms = evidence.plan.arms
    names = [arm.name for arm in arms]
    replicates = {name: len(evidence.arm(name).full_runs) for name in names}
    requests = {}
    for planned in step.runs:
        index = names.index(planned.arm)
        run = naming.quality_run(number, index, planned.seed)
        requests[run] = quality_request(
            evidence.workload,
            arms[index],
            run=run,
            replicate=replicates[planned.arm],
            seed=planned.seed,
            context=context,
        )
        replicates[planned.arm] += 1
    return requests
