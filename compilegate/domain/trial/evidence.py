"""The evidence of a trial, assembled from the records of its jobs.

A record of a job is never changed. The evidence follows from the plan and the records alone,
independent of their order and of repetition.

The evidence document is where records are kept: each run in it is one, written once. It is read and
written in one piece, so that records and evidence can never disagree, a round reads one object
however many jobs came before, and a trial continues from what an earlier deployment has written.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compilegate.domain.decision import CANARY, SHADOW, Decision, QualityStep, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import TRIAL, Arm, Evidence, FullRun, SpeedRun, TrialPlan
from compilegate.domain.judging.evidence_file import check_steps, content_of, read_run
from compilegate.domain.judging.validity import alike_but_for_time
from compilegate.domain.planning.arms import CONTROL, ArmPlan
from compilegate.domain.production.canary import CHANGED, OVERDUE, RETIRED, canary_runs
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import BASELINE, Workload

# Records of a trial's jobs, and how they are read from the evidence document that keeps them.
#
# A run that cannot be read stays a record: nothing that a job left is lost, and the trial is
# invalid.

# One run, and the name of its arm.
ArmRun = tuple[str, SpeedRun | FullRun]


@dataclass(frozen=True)
class UnreadableRun:
    """A run that breaks its contract, and why; its record is kept as it is."""

    arm: str
    record: Any
    why: str

    @property
    def is_full(self) -> bool:
        """Whether it is a full run, as far as its record says."""
        return isinstance(self.record, Mapping) and self.record.get("stage") == "quality"


@dataclass(frozen=True)
class JobRecord:
    """What one job came to: its runs, none where it left no result, and its price.

    ``usd`` is None for a job that cost the trial nothing, and of epoch second ``at``: the price of
    a job that is still being stopped is not final. ``unreadable`` runs make the trial invalid.
    ``unmeasured`` are arms of which a speed job that completed left no segment.
    """

    job: str
    usd: float | None = None
    runs: tuple[ArmRun, ...] = ()
    at: int = 0
    unreadable: tuple[UnreadableRun, ...] = ()
    unmeasured: tuple[str, ...] = ()

    @property
    def has_runs(self) -> bool:
        """Whether the job left a run."""
        return bool(self.runs or self.unreadable)


@dataclass(frozen=True)
class TrialRecords:
    """Everything that is recorded: the jobs, and the rounds in which the cloud failed one."""

    jobs: tuple[JobRecord, ...] = ()
    lost_rounds: tuple[int, ...] = ()

    @property
    def with_runs(self) -> frozenset[str]:
        """Jobs that have left a run."""
        return frozenset(record.job for record in self.jobs if record.has_runs)


def read_records(document: Mapping[str, Any] | None) -> TrialRecords:
    """The records behind an evidence document of any release; what cannot be read is kept."""
    if document is None:
        return TrialRecords()
    prices: Mapping[str, float] = document["plan"]["usd_by_job"]
    unmeasured = document["plan"].get("unmeasured_by_job", {})
    by_job = {
        job: JobRecord(job, prices.get(job), unmeasured=tuple(unmeasured.get(job, ())))
        for job in (*prices, *(job for job in unmeasured if job not in prices))
    }
    for key, arms in (("arms", document["arms"]), ("controls", document.get("controls", ()))):
        for index, arm in enumerate(arms):
            for number, record in enumerate(arm["runs"]):
                path = f"{key}[{index}].runs[{number}]"
                job = str(record.get("job") or "") if isinstance(record, Mapping) else ""
                own = by_job.get(job, JobRecord(job))
                by_job[job] = with_run(own, str(arm["name"]), record, path)
    lost = tuple(document["plan"].get("lost_rounds", ()))
    return TrialRecords(tuple(by_job.values()), lost)


def with_run(job: JobRecord, arm: str, record: Any, path: str) -> JobRecord:
    """The job's record with this run, which may not be readable."""
    try:
        return replace(job, runs=(*job.runs, (arm, read_run(record, path))))
    except InvalidEvidenceError as error:
        broken = UnreadableRun(arm, record, str(error))
        return replace(job, unreadable=(*job.unreadable, broken))


WEEKS_PER_YEAR = 52


@dataclass(frozen=True)
class TrialEvidence:
    """Everything that a trial's jobs have shown and cost so far; ``arms`` are the plan's."""

    workload: Workload
    plan: RecordedPlan
    arms: tuple[Arm, ...]
    usd_by_job: Mapping[str, float]
    records: TrialRecords
    unreadable: tuple[UnreadableRun, ...] = ()
    unmeasured_by_job: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def with_records(self, *more: JobRecord) -> TrialEvidence:
        """The evidence that these records are as well."""
        records = replace(self.records, jobs=(*self.records.jobs, *more))
        return assemble(self.workload, self.plan, records)

    def with_lost_round(self, number: int) -> TrialEvidence:
        """The evidence with a round in which the cloud could not run a job."""
        lost = (*self.records.lost_rounds, number)
        return replace(self, records=replace(self.records, lost_rounds=lost))

    @property
    def lost_rounds(self) -> tuple[int, ...]:
        """Rounds in which the cloud could not run a job, in order."""
        return tuple(sorted(set(self.records.lost_rounds)))

    @property
    def spent_usd(self) -> float:
        """What the trial's jobs have cost."""
        return math.fsum(self.usd_by_job.values())

    def jobs_without(self, arm: str) -> list[str]:
        """Speed jobs that completed and left no segment of the arm that they had to measure."""
        return [job for job, arms in self.unmeasured_by_job.items() if arm in arms]

    @property
    def jobs(self) -> frozenset[str]:
        """Jobs that have left a run."""
        return self.records.with_runs

    @property
    def next_order(self) -> int:
        """Position in time of the next full run."""
        unreadable = sum(run.is_full for run in self.unreadable)
        return sum(len(arm.full_runs) for arm in self.arms) + unreadable

    @property
    def next_block(self) -> int:
        """Number of the next speed block."""
        return max((run.block for arm in self.arms for run in arm.speed), default=-1) + 1

    @property
    def control_blocks(self) -> dict[str, int]:
        """How many blocks each control has had."""
        return {control.name: len(control.speed) for control in self.controls}

    @property
    def judged_arms(self) -> tuple[Arm, ...]:
        """The baseline and the candidates."""
        return tuple(arm for arm in self.arms if self.plan.arm(arm.name).role != CONTROL)

    @property
    def controls(self) -> tuple[Arm, ...]:
        """The arms that are measured to separate effects."""
        return tuple(arm for arm in self.arms if self.plan.arm(arm.name).role == CONTROL)

    @property
    def runs_at_start(self) -> float:
        """Runs of the year that began with the trial."""
        return self.workload.schedule.runs_per_week * WEEKS_PER_YEAR

    @property
    def runs_remaining(self) -> float:
        """Runs of that year that production has not already made for the trial."""
        made = sum(run.mode != SHADOW for arm in self.arms for run in arm.full_runs)
        return max(self.runs_at_start - made, 0)

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


def assemble(workload: Workload, plan: RecordedPlan, records: TrialRecords) -> TrialEvidence:
    """The evidence that these records are; of one job the first runs and the latest price count."""
    by_job = defaultdict[str, list[JobRecord]](list)
    for record in records.jobs:
        by_job[record.job].append(record)
    first = [_first_with_runs(own) for _, own in sorted(by_job.items())]
    runs = [run for record in first for run in record.runs]
    usd: dict[str, float] = {}
    for job, own in sorted(by_job.items()):
        prices = [(record.at, record.usd) for record in own if record.usd is not None]
        if prices:
            usd[job] = max(prices)[1]
    return TrialEvidence(
        workload=workload,
        plan=plan,
        arms=tuple(_arm(arm, [run for name, run in runs if name == arm.name]) for arm in plan.arms),
        usd_by_job=usd,
        records=records,
        unreadable=tuple(run for record in first for run in record.unreadable),
        unmeasured_by_job={one.job: one.unmeasured for one in first if one.unmeasured},
    )


def _first_with_runs(records: Sequence[JobRecord]) -> JobRecord:
    """Of one job's records the first that has runs; any where none has."""
    with_runs = [record for record in records if record.has_runs]
    return min(with_runs or records, key=lambda record: record.at)


def _arm(arm: ArmPlan, runs: Sequence[SpeedRun | FullRun]) -> Arm:
    """The arm with its runs, which come in the order of their jobs, in the order of time."""
    speed = sorted((run for run in runs if isinstance(run, SpeedRun)), key=lambda run: run.block)
    full = sorted((run for run in runs if isinstance(run, FullRun)), key=lambda run: run.order)
    steps = [run.full_run_steps for run in speed if run.full_run_steps]
    return Arm(
        name=arm.name,
        full_run_steps=steps[-1] if steps else None,
        usd_per_hour=arm.usd_per_hour,
        devices=arm.devices,
        speed=tuple(speed),
        quality=tuple(full),
        overrides=arm.overrides,
    )


def to_evidence(evidence: TrialEvidence) -> Evidence:
    """What the judge reads of a trial; raises InvalidEvidenceError where that breaks its contract.

    It is what ``read_evidence`` reads from the trial's document.
    """
    workload, plan = evidence.workload, evidence.plan
    if evidence.unreadable:
        raise InvalidEvidenceError(evidence.unreadable[0].why)
    for key, arms in (("arms", evidence.judged_arms), ("controls", evidence.controls)):
        for index, arm in enumerate(arms):
            check_steps(arm, f"{key}[{index}].full_run_steps")
    return Evidence(
        workload=workload.name,
        phase=TRIAL,
        promoted=None,
        policy=replace(workload.policy, quality_runs=plan.quality_mode.used),
        quality=workload.quality,
        history_wall_seconds=(),
        runs_per_week=workload.schedule.runs_per_week,
        runs_remaining=evidence.runs_remaining,
        arms=evidence.judged_arms,
        controls=evidence.controls,
        plan=_plan(evidence),
        content=content_of(to_document(evidence)),
    )


def to_document(evidence: TrialEvidence) -> dict[str, Any]:
    """The evidence document that is kept (docs/contracts.md, The evidence document)."""
    workload, plan = evidence.workload, evidence.plan
    unmeasured = {job: list(arms) for job, arms in evidence.unmeasured_by_job.items()}
    controls = [_arm_document(arm, evidence) for arm in evidence.controls]
    return {
        "schema": 1,
        "workload": workload.name,
        "phase": TRIAL,
        "promoted": None,
        "policy": {**asdict(workload.policy), "quality_runs": plan.quality_mode.used},
        "quality": {k: v for k, v in asdict(workload.quality).items() if v is not None},
        "usd_per_hour": plan.baseline.usd_per_hour,
        "devices": plan.baseline.devices,
        "runs_per_week": workload.schedule.runs_per_week,
        "runs_remaining": evidence.runs_remaining,
        "plan": {
            **asdict(_plan(evidence)),
            "usd_by_job": dict(evidence.usd_by_job),
            **({"lost_rounds": list(evidence.lost_rounds)} if evidence.lost_rounds else {}),
            **({"unmeasured_by_job": unmeasured} if unmeasured else {}),
        },
        "arms": [_arm_document(arm, evidence) for arm in evidence.judged_arms],
        **({"controls": controls} if controls else {}),
    }


def _plan(evidence: TrialEvidence) -> TrialPlan:
    plan = evidence.plan
    return TrialPlan(
        speed_steps=plan.speed_steps,
        blocks_per_round=plan.blocks_per_round,
        max_blocks=plan.max_blocks,
        production_beside=plan.quality_mode.beside,
        asked_quality_runs=plan.quality_mode.asked,
        runs_as_shadow_because=plan.quality_mode.why,
        usd_per_block=plan.usd_per_block,
        usd_per_quality_run=plan.usd_per_quality_run,
        spent_usd=evidence.spent_usd,
        runs_at_start=evidence.runs_at_start,
    )


def _arm_document(arm: Arm, evidence: TrialEvidence) -> dict[str, Any]:
    unreadable = [run.record for run in evidence.unreadable if run.arm == arm.name]
    return {
        "name": arm.name,
        "usd_per_hour": arm.usd_per_hour,
        "devices": arm.devices,
        "overrides": arm.overrides,
        "full_run_steps": arm.full_run_steps,
        "runs": [*(run.record for run in arm.runs), *unreadable],
    }


# Production runs that are evidence of a trial: its canary runs, and baseline runs beside it.
#
# They cost the trial nothing, except for a candidate that failed: its run is made again with the
# baseline.

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
