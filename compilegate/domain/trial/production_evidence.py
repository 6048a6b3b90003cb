"""Production runs that are evidence of a trial: its canary runs, and baseline runs beside it.

They cost the trial nothing, except for a candidate that failed: its run is made again with the
baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.decision import CANARY, Decision, QualityStep, Verdict
from compilegate.domain.judging.validity import alike_but_for_time
from compilegate.domain.production.canary import (
    CHANGED,
    OVERDUE,
    RETIRED,
    canary_runs,
)
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.trial.evidence import TrialEvidence
from compilegate.domain.trial.job_records import JobRecord, with_run
from compilegate.domain.workload.model import BASELINE

PRODUCTION = "production"
# Why production makes no more runs for the trial, by how its last round ended.
ENDINGS = {
    OVERDUE: Reason(
        "canary_overdue",
        "production did not make the runs that the trial needs in time",
    ),
    CHANGED: Reason(
        "production_changed",
        "production now trains another job than the trial measures",
    ),
    RETIRED: Reason(
        "production_retired",
        "the workload was taken out of production while the trial waited for its runs",
    ),
}


@dataclass(frozen=True)
class ProductionFacts:
    """What production has done: the workload's history, and which job each spec describes.

    ``jobs`` has the digest (``TrainedJob``) by spec key, None where the spec is gone.
    ``canary_ended`` is why the trial's last canary round ended, None without one.
    """

    history: WorkloadHistory = field(default_factory=WorkloadHistory)
    jobs: Mapping[str, str | None] = field(default_factory=dict)
    canary_ended: str | None = None


def production_records(
    production: ProductionFacts, evidence: TrialEvidence, *, trial: str, code: str, now: int
) -> Iterator[JobRecord]:
    """The production runs that are evidence, in the order of time."""
    if not evidence.plan.runs_in_production:
        return
    names = {arm.name for arm in evidence.plan.judged_arms}
    runs = [(run, CANARY) for run in canary_runs(production.history, trial)]
    runs += [(run, PRODUCTION) for run in _beside(production, evidence, code)]
    order = evidence.next_order
    for run, mode in sorted(runs, key=lambda one: (one[0].started_at, one[0].job)):
        if run.arm not in names:
            continue
        failed = mode == CANARY and run.arm != BASELINE and not run.finished
        usd = _usd(run, evidence) if failed else None
        record = JobRecord(run.job, usd, at=now)
        if run.job not in evidence.jobs:
            record = with_run(record, run.arm, _as_evidence(run, mode, order), run.job)
            order += 1
        yield record


def while_in_production(decision: Decision, ended: str | None) -> Decision:
    """The decision, or ``inconclusive`` where production would not make the canary runs it needs.

    ``ended`` is why the last canary round ended, None without one.
    """
    step = decision.next
    if not isinstance(step, QualityStep) or not step.is_canary or ended not in ENDINGS:
        return decision
    return inconclusive(decision, ENDINGS[ended])


def inconclusive(decision: Decision, reason: Reason) -> Decision:
    """A decision that would have gone on, ended for this reason."""
    reasons = (reason, *decision.reasons)
    return replace(decision, verdict=Verdict.INCONCLUSIVE, reasons=reasons, next=None)


def _beside(
    production: ProductionFacts, evidence: TrialEvidence, code: str
) -> Iterator[ProductionRun]:
    """Production's own baseline runs of the same job since the trial began.

    One that crashed says nothing of the candidate and nothing new of the baseline. One that is
    made of something else is not evidence and does not make the trial's invalid.
    """
    baseline = evidence.arm(BASELINE)
    measured = [*baseline.speed, *(run for run in baseline.quality if run.mode != PRODUCTION)]
    if not evidence.plan.quality_mode.beside or not measured:
        return
    reference = next((run.fingerprint for run in measured if run.fingerprint), None)
    same_job = _runs_of_the_job(production, TrainedJob(evidence.workload, code).digest)
    for run in production.history.runs:
        own = run.arm == BASELINE and run.canary is None and run.counts and run.finished
        before = run.started_at < evidence.plan.started_at
        if not own or before or run.run not in same_job:
            continue
        if reference is None or alike_but_for_time(run.result.get("fingerprint") or {}, reference):
            yield run


def _runs_of_the_job(production: ProductionFacts, job: str) -> set[str]:
    """Production runs that began with what the trial measures."""
    return {
        begun.run
        for begun in production.history.begun
        if production.jobs.get(begun.spec_key) == job
    }


def _as_evidence(run: ProductionRun, mode: str, order: int) -> dict[str, Any]:
    """The run as the judge reads it; what it cost production is kept for the report."""
    return {
        "metric": None,
        "wall_seconds": None,
        **run.result,
        "stage": "quality",
        "mode": mode,
        "order": order,
        "job": run.job,
        "finished": run.finished,
        "production_run": run.run,
        "started_at": run.started_at,
        "usd": run.usd,
        "billable_seconds": run.billable_seconds,
    }


def _usd(run: ProductionRun, evidence: TrialEvidence) -> float:
    """What the run cost, by its own record, else by its billed or elapsed time."""
    if run.usd is not None:
        return run.usd
    seconds = run.billable_seconds
    if seconds is None:
        seconds = max(run.ended_at - run.started_at, 0.0)
    return seconds / 3600 * evidence.plan.arm(run.arm).usd_per_hour
