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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compilegate.domain.decision import SHADOW
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import TRIAL, Arm, Evidence, FullRun, SpeedRun, TrialPlan
from compilegate.domain.judging.evidence_file import check_steps, content_of
from compilegate.domain.planning.arm_plan import CONTROL, ArmPlan
from compilegate.domain.trial.job_records import JobRecord, TrialRecords, UnreadableRun
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import Workload

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
