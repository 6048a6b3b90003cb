"""One round of a trial: its evidence, the decision, and what to do next.

Within a round, an interim look stops the arms that have lost. Only a loss stops a run: a candidate
that looks good makes all its runs, and one that can no longer be proven has not lost, because
otherwise the order in which runs end would decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.failures import IN_PROGRESS, RESOURCE_LIMIT_ERROR
from compilegate.domain.judging.production import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.problem import ProblemWithFix
from compilegate.domain.request.sections import JobContext
from compilegate.domain.trial.evidence import TrialEvidence, assemble
from compilegate.domain.trial.job_records import TrialRecords
from compilegate.domain.trial.jobs import EndedJob
from compilegate.domain.trial.limits import limit_met, without_silent_arms
from compilegate.domain.trial.next_round import CanaryRequest, NextRound, next_round
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.trial.production_evidence import (
    ProductionFacts,
    inconclusive,
    production_records,
    while_in_production,
)
from compilegate.domain.trial.records import judge_with, price_record
from compilegate.domain.workload.model import Workload

# Rounds in which the cloud may fail a trial; what they lacked is requested again.
LOST_ROUNDS = 2
# Reasons of a candidate that has lost: its other runs cannot change that.
LOST = ("quality_worse", "candidate_crashed")


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


@dataclass(frozen=True)
class RoundOutcome:
    """The outcome of a round; ``failure`` says why the trial cannot continue without a verdict."""

    evidence: TrialEvidence
    decision: Decision
    stop: tuple[str, ...]
    next: NextRound | CanaryRequest | None = None
    failure: str | None = None


def judge_round(facts: RoundFacts, judge: Judge) -> RoundOutcome:
    """Record the round's jobs, judge the trial so far, and lay out the round that follows."""
    judged = judge_with(facts.ended, _before_its_jobs(facts), judge, trial=facts.trial)
    evidence, decision = judged.evidence, judged.decision
    stop = tuple(job.job for job in facts.duplicates if job.status == IN_PROGRESS)
    if decision.verdict is Verdict.CONTINUE:
        failure = _failure(facts, evidence)
        if failure is not None:
            return RoundOutcome(evidence, decision, stop, failure=failure)
        decision = _within_limits(decision, evidence, facts)
    if decision.verdict is not Verdict.CONTINUE or decision.next is None:
        return RoundOutcome(evidence, decision, stop)
    following = next_round(
        decision.next, evidence, facts.context, number=facts.round, now=facts.now
    )
    return RoundOutcome(evidence, decision, stop, following)


def _before_its_jobs(facts: RoundFacts) -> TrialEvidence:
    """Evidence of the rounds before, with what was spent, lost and made by production since."""
    evidence = assemble(facts.workload, facts.plan, facts.records)
    if any(job.infrastructure for job in _deciding(facts)):
        evidence = evidence.with_lost_round(facts.round)
    jobs = (*facts.ended, *facts.duplicates)
    prices = [price_record(job, evidence, now=facts.now) for job in jobs]
    production = production_records(
        facts.production, evidence, trial=facts.trial, code=facts.code, now=facts.now
    )
    return evidence.with_records(*prices, *production)


def _deciding(facts: RoundFacts) -> list[EndedJob]:
    """The jobs that may end a round or a trial: those of no control."""
    return [job for job in facts.ended if not job.controls(facts.plan.arms)]


def _failure(facts: RoundFacts, evidence: TrialEvidence) -> str | None:
    """Why the trial ends without a verdict: somebody stopped it, or the cloud failed too often."""
    jobs = _deciding(facts)
    stopped = [job.job for job in jobs if job.stopped_by_others]
    if stopped:
        return ProblemWithFix(
            f"stopped before the end, not by this trial: {', '.join(stopped)}",
            fix="see in CloudTrail who called StopTrainingJob, then run the trial again",
        )
    if len(evidence.lost_rounds) <= LOST_ROUNDS:
        return None
    return next(
        (f"{job.job} could not run: {job.reason}" for job in jobs if job.infrastructure), None
    )


def _within_limits(decision: Decision, evidence: TrialEvidence, facts: RoundFacts) -> Decision:
    """The decision, or ``inconclusive`` where its next step, or the last one, met a limit."""
    if decision.next is None:
        return decision
    reason = limit_met(
        decision.next, evidence, _deciding(facts), rounds_done=facts.round, now=facts.now
    )
    if reason is not None:
        return inconclusive(decision, reason)
    decision = replace(decision, next=without_silent_arms(decision.next, evidence))
    return while_in_production(decision, facts.production.canary_ended)


class RoundEffect(StrEnum):
    """What the end of one job means for the others of its round."""

    NONE = "none"
    # An interim look at the evidence may stop the arms that have lost.
    LOOK = "look"
    STOP = "stop"


def round_effect(
    job: EndedJob, arms: Sequence[ArmPlan], *, error: str | None, jobs_in_round: int
) -> RoundEffect:
    """What the end of ``job`` means for its round.

    ``arms`` are the plan's, needed only for a job of a node group; ``error`` is the state
    machine's, None where its task did not fail. A control decides nothing, and a quota that left
    no room for a job says nothing about the others.
    """
    if job.run.group and job.controls(arms):
        return RoundEffect.NONE
    if job.infrastructure or job.stopped_by_others:
        return RoundEffect.NONE if error == RESOURCE_LIMIT_ERROR else RoundEffect.STOP
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
    decision = judge_with(ended, evidence, judge, trial=trial).decision
    arms = evidence.plan.arms
    if decision.verdict in (Verdict.STAY_OFF, Verdict.INVALID):
        return set(range(len(arms)))
    lost = {reason.arm for reason in decision.reasons if reason.code in LOST}
    indexes = {run.arm_index for run in under_test if run.arm_index}
    return {index for index in indexes if arms[index].name in lost}
