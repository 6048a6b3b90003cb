"""One round of a trial: its evidence, the decision, and what to do next.

Within a round, an interim look stops the arms that have lost. Only a loss stops a run: a candidate
that looks good makes all its runs, and one that can no longer be proven has not lost, because
otherwise the order in which runs end would decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import Decision, QualityStep, RequestedFullRun, SpeedStep, Verdict
from compilegate.domain.errors import CompilegateError
from compilegate.domain.failures import IN_PROGRESS
from compilegate.domain.judging.probation import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.planning.arms import ArmPlan, controls_of
from compilegate.domain.request.build import (
    JobContext,
    pairs_request,
    quality_request,
    speed_request,
)
from compilegate.domain.trial.evidence import (
    ENDINGS,
    JobRecord,
    ProductionFacts,
    TrialEvidence,
    TrialRecords,
    production_records,
)
from compilegate.domain.trial.jobs import EndedJob, judge_with, usd_of
from compilegate.domain.trial.limits import PlannedStep
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import BASELINE, Workload

# The jobs of a trial's next round, each with its complete CreateTrainingJob request.


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
    runs: tuple[RequestedFullRun, ...]
    timeout_seconds: int


# Rounds in which the cloud may fail a trial; what they lacked is requested again.
LOST_ROUNDS = 2
# Reasons of a candidate that has lost: its other runs cannot change that.
LOST = (
    "quality_worse", "guardrail_worse", "candidate_crashed", "not_equivalent", "numerics_wrong",
)  # fmt: skip


@dataclass(frozen=True)
class RoundFacts:
    """Everything that a round is judged on.

    ``duplicates`` are jobs of earlier rounds whose end is not awaited: CreateTrainingJob may start
    a job and its answer be lost, the retry then starts another one. ``code`` identifies the team's
    code.
    """

    trial: str
    round: int
    workload: Workload
    code: str
    plan: RecordedPlan
    records: TrialRecords
    ended: tuple[EndedJob, ...]
    duplicates: tuple[EndedJob, ...]
    production: ProductionFacts
    context: JobContext
    now: int


class InfrastructureFailureError(CompilegateError):
    """The cloud could not run a job; that says nothing about the arm, so the trial ends."""


@dataclass(frozen=True)
class RoundOutcome:
    """The outcome of a round; ``failure`` says why the trial cannot continue without a verdict."""

    evidence: TrialEvidence
    decision: Decision
    stop: tuple[str, ...]
    next: NextRound | CanaryRequest | None = None
    failure: InfrastructureFailureError | None = None


def judge_round(facts: RoundFacts, judge: Judge) -> RoundOutcome:
    """Record the round's jobs, judge the trial so far, and lay out the round that follows."""
    before = _before_its_jobs(facts)
    evidence, decision = judge_with(facts.ended, before, judge, trial=facts.trial)
    # Also those whose end was reported: the machine gave up waiting, its answer was lost.
    stop = tuple(
        job.job
        for job in (*facts.ended, *facts.duplicates)
        if job.described.get("TrainingJobStatus") == IN_PROGRESS
    )
    # The jobs that may end a round or a trial: those of no control.
    deciding = [job for job in facts.ended if not controls_of(job.run, facts.plan.arms)]
    step, following = decision.next, None
    if decision.verdict is Verdict.CONTINUE:
        failure = _failure(deciding, evidence)
        if failure is not None:
            return RoundOutcome(evidence, decision, stop, failure=failure)
        if isinstance(step, SpeedStep | QualityStep):
            decision = _within_limits(decision, PlannedStep(step, evidence), deciding, facts)
            step = decision.next
    if decision.verdict is Verdict.CONTINUE and isinstance(step, SpeedStep | QualityStep):
        following = _next_round(PlannedStep(step, evidence), facts)
    return RoundOutcome(evidence, decision, stop, following)


def _next_round(planned: PlannedStep, facts: RoundFacts) -> NextRound | CanaryRequest:
    """What the judge's next step takes."""
    step, arms = planned.step, facts.plan.arms
    if isinstance(step, SpeedStep):
        requests = {
            (run := job.run(facts.round)): speed_request(
                facts.workload,
                job.arms,
                run=run,
                first_block=job.first_block,
                blocks=job.blocks,
                steps=step.steps,
                context=facts.context,
            )
            for job in planned.speed_jobs
        }
    elif step.is_canary:
        return CanaryRequest(facts.round, step.runs, planned.canary_timeout_seconds(facts.now))
    else:
        requests = _quality_requests(planned, step, facts)
    return NextRound(
        stage=step.stage,
        jobs=tuple(
            JobRequest(run, _limited(request, seconds),
                       bool(controls_of(naming.parse_run(run), arms)))
            for (run, request), seconds
            in zip(requests.items(), planned.affordable_seconds, strict=True)
        ),
        at_once=planned.at_once,
    )  # fmt: skip


def _limited(request: Mapping[str, Any], seconds: int) -> dict[str, Any]:
    """The request with no more time than the rest of the budget allows."""
    limits = request["StoppingCondition"]
    most = min(limits["MaxRuntimeInSeconds"], seconds)
    return {**request, "StoppingCondition": {**limits, "MaxRuntimeInSeconds": most}}


def _quality_requests(
    planned: PlannedStep, step: QualityStep, facts: RoundFacts
) -> dict[str, dict[str, Any]]:
    """A replicate's number counts the full runs that its arm has behind it.

    A job of pairs is named after the first run of its candidate.
    """
    arms = {arm.name: arm for arm in facts.plan.arms}
    replicates = {arm.name: len(arm.full_runs) for arm in planned.evidence.arms}
    requests = {}
    for job in planned.pair_jobs or [(run,) for run in step.runs]:
        runs = []
        for one in job:
            runs.append((one.arm, one.seed, replicates[one.arm]))
            replicates[one.arm] += 1
        name, seed, replicate = next((run for run in runs if run[0] != BASELINE), runs[0])
        pairs, arm = len(runs) > 1, arms[name]
        run = naming.quality_run(facts.round, list(arms).index(name), seed, pairs=pairs)
        if pairs:
            both = (facts.plan.baseline, arm)
            requests[run] = pairs_request(
                facts.workload, both, runs, run=run, context=facts.context
            )
        else:
            requests[run] = quality_request(
                facts.workload,
                arm,
                run=run,
                replicate=replicate,
                seed=seed,
                context=facts.context,
            )
    return requests


def _before_its_jobs(facts: RoundFacts) -> TrialEvidence:
    """Evidence of the rounds before, with what was spent, lost and made by production since."""
    arms, records, now = facts.plan.arms, facts.records, facts.now
    lacking = [job for job in facts.ended if job.infrastructure and not controls_of(job.run, arms)]
    if any(not job.waited for job in lacking):
        records = replace(records, lost_rounds=(*records.lost_rounds, facts.round))
    elif lacking:
        records = replace(records, waited_rounds=(*records.waited_rounds, facts.round))
    evidence = TrialEvidence(facts.workload, facts.plan, records)
    prices = [
        JobRecord(job.job, usd=usd_of(job.run, job.described, arms, now=now), at=now)
        for job in (*facts.ended, *facts.duplicates)
    ]
    production = production_records(
        facts.production, evidence, trial=facts.trial, code=facts.code, now=now
    )
    return evidence.with_records(*prices, *production)


def _failure(
    jobs: Sequence[EndedJob], evidence: TrialEvidence
) -> InfrastructureFailureError | None:
    """Why the trial ends without a verdict: somebody stopped it, or the cloud failed too often."""
    stopped = [job.job for job in jobs if job.stopped_by_others]
    if stopped:
        return InfrastructureFailureError(
            f"stopped before the end, not by this trial: {', '.join(stopped)}",
            fix="see in CloudTrail who called StopTrainingJob, then run the trial again",
        )
    # A quota in use is waited for as long as the trial may take.
    broken = [job for job in jobs if job.infrastructure and not job.waited]
    if len(evidence.lost_rounds) <= LOST_ROUNDS or not broken:
        return None
    return InfrastructureFailureError(f"{broken[0].job} could not run: {broken[0].reason}")


def _within_limits(
    decision: Decision, planned: PlannedStep, jobs: Sequence[EndedJob], facts: RoundFacts
) -> Decision:
    """The decision, or ``inconclusive`` where its next step, or the last one, met a limit.

    So it is where production would not make the canary runs that it needs.
    """
    reason = planned.limit_met(jobs, rounds_done=facts.round, now=facts.now)
    if reason is None and planned.is_canary:
        reason = ENDINGS.get(facts.production.canary_ended or "")
    if reason is None:
        return replace(decision, next=planned.without_silent_arms())
    reasons = (reason, *decision.reasons)
    return replace(decision, verdict=Verdict.INCONCLUSIVE, reasons=reasons, next=None)


class RoundEffect(StrEnum):
    """What the end of one job means for the others of its round."""

    NONE = "none"
    # An interim look at the evidence may stop the arms that have lost.
    LOOK = "look"
    STOP = "stop"


def round_effect(job: EndedJob, arms: Sequence[ArmPlan], *, jobs_in_round: int) -> RoundEffect:
    """What the end of ``job`` means for its round.

    ``arms`` are the plan's, needed only for a job of a node group. A control decides nothing, and
    a quota that left no room for a job says nothing about the others.
    """
    if job.run.group and controls_of(job.run, arms):
        return RoundEffect.NONE
    if job.infrastructure or job.stopped_by_others:
        return RoundEffect.NONE if job.waited else RoundEffect.STOP
    if job.run.is_speed or jobs_in_round <= 1:
        return RoundEffect.NONE
    return RoundEffect.LOOK


def lost_arms(
    ended: Sequence[EndedJob],
    under_test: Iterable[RunId],
    evidence: TrialEvidence,
    judge: Judge,
    *,
    trial: str,
) -> set[int]:
    """Indexes of the arms whose further runs cannot matter; ``under_test`` are the runs so far.

    The baseline's runs are needed while any candidate is left.
    """
    _, decision = judge_with(ended, evidence, judge, trial=trial)
    arms = evidence.plan.arms
    if decision.verdict in (Verdict.STAY_OFF, Verdict.INVALID):
        return set(range(len(arms)))
    lost = {reason.arm for reason in decision.reasons if reason.code in LOST}
    indexes = {run.arm_index for run in under_test if run.arm_index}
    return {index for index in indexes if arms[index].name in lost}
