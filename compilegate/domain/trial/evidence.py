"""The evidence of a trial, assembled from the records of its jobs.

A record of a job is never changed. The evidence follows from the plan and the records alone,
independent of their order and of repetition.

The evidence document is where records are kept: each run in it is one, written once. It is read and
written in one piece, so that records and evidence can never disagree, a round reads one object
however many jobs came before, and a trial of an earlier release continues from what it has written.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain.decision import SHADOW
from compilegate.domain.judging.evidence import TRIAL, Arm, Evidence, FullRun, SpeedRun, TrialPlan
from compilegate.domain.judging.evidence_file import check_steps, content_of, read_run
from compilegate.domain.planning.arm_plan import CONTROL, ArmPlan
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import Workload

# One run, and the name of its arm.
ArmRun = tuple[str, SpeedRun | FullRun]

WEEKS_PER_YEAR = 52


@dataclass(frozen=True)
class JobRecord:
    """What one job came to: its runs, none where it left no result, and its price.

    ``usd`` is None for a job that cost the trial nothing, and of epoch second ``at``: the price of
    a job that is still being stopped is not final. ``lost_round`` is the round in which the cloud
    could not run it.
    """

    job: str
    usd: float | None = None
    runs: tuple[ArmRun, ...] = ()
    at: int = 0
    lost_round: int | None = None


@dataclass(frozen=True)
class TrialEvidence:
    """Everything that a trial's jobs have shown and cost so far; ``arms`` are the plan's."""

    workload: Workload
    plan: RecordedPlan
    arms: tuple[Arm, ...]
    usd_by_job: Mapping[str, float]
    lost_rounds: tuple[int, ...] = ()
    records: tuple[JobRecord, ...] = ()

    def with_records(self, *more: JobRecord) -> TrialEvidence:
        """The evidence that these records are as well."""
        return assemble(self.workload, self.plan, (*self.records, *more))

    @property
    def spent_usd(self) -> float:
        """What the trial's jobs have cost."""
        return math.fsum(self.usd_by_job.values())

    @property
    def jobs(self) -> frozenset[str]:
        """Jobs that have left a run."""
        return frozenset(run.job for arm in self.arms for run in arm.runs)

    @property
    def next_order(self) -> int:
        """Position in time of the next full run."""
        return sum(len(arm.full_runs) for arm in self.arms)

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
    def runs_remaining(self) -> float:
        """Runs of the next year that production has not already made for the trial."""
        made = sum(run.mode != SHADOW for arm in self.arms for run in arm.full_runs)
        return max(self.workload.schedule.runs_per_week * WEEKS_PER_YEAR - made, 0)

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


def assemble(workload: Workload, plan: RecordedPlan, records: Iterable[JobRecord]) -> TrialEvidence:
    """The evidence that these records are; of one job the first runs and the latest price count."""
    kept, by_job = tuple(records), defaultdict[str, list[JobRecord]](list)
    for record in kept:
        by_job[record.job].append(record)
    runs = [run for _, own in sorted(by_job.items()) for run in _first_runs(own)]
    usd: dict[str, float] = {}
    for job, own in sorted(by_job.items()):
        prices = [(record.at, record.usd) for record in own if record.usd is not None]
        if prices:
            usd[job] = max(prices)[1]
    lost = {record.lost_round for record in kept}
    return TrialEvidence(
        workload=workload,
        plan=plan,
        arms=tuple(_arm(arm, [run for name, run in runs if name == arm.name]) for arm in plan.arms),
        usd_by_job=usd,
        lost_rounds=tuple(sorted(number for number in lost if number is not None)),
        records=kept,
    )


def _first_runs(records: Sequence[JobRecord]) -> tuple[ArmRun, ...]:
    with_runs = [record for record in records if record.runs]
    return min(with_runs, key=lambda record: record.at).runs if with_runs else ()


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
        plan=TrialPlan(
            speed_steps=plan.speed_steps,
            blocks_per_round=plan.blocks_per_round,
            max_blocks=plan.max_blocks,
            production_beside=plan.quality_mode.beside,
            asked_quality_runs=plan.quality_mode.asked,
            runs_as_shadow_because=plan.quality_mode.why,
            usd_per_block=plan.usd_per_block,
            usd_per_quality_run=plan.usd_per_quality_run,
            spent_usd=evidence.spent_usd,
        ),
        content=content_of(to_document(evidence)),
    )


def to_document(evidence: TrialEvidence) -> dict[str, Any]:
    """The evidence document that is kept (contracts, section 5)."""
    workload, plan = evidence.workload, evidence.plan
    controls = [_arm_document(arm) for arm in evidence.controls]
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
        "plan": _plan(evidence),
        "arms": [_arm_document(arm) for arm in evidence.judged_arms],
        **({"controls": controls} if controls else {}),
    }


def _plan(evidence: TrialEvidence) -> dict[str, Any]:
    plan, lost = evidence.plan, list(evidence.lost_rounds)
    return {
        "speed_steps": plan.speed_steps,
        "blocks_per_round": plan.blocks_per_round,
        "max_blocks": plan.max_blocks,
        "usd_per_block": plan.usd_per_block,
        "usd_per_quality_run": plan.usd_per_quality_run,
        "spent_usd": evidence.spent_usd,
        "usd_by_job": dict(evidence.usd_by_job),
        "asked_quality_runs": plan.quality_mode.asked,
        "runs_as_shadow_because": plan.quality_mode.why,
        "production_beside": plan.quality_mode.beside,
        **({"lost_rounds": lost} if lost else {}),
    }


def _arm_document(arm: Arm) -> dict[str, Any]:
    return {
        "name": arm.name,
        "usd_per_hour": arm.usd_per_hour,
        "devices": arm.devices,
        "overrides": arm.overrides,
        "full_run_steps": arm.full_run_steps,
        "runs": [run.record for run in arm.runs],
    }


def read_records(document: Mapping[str, Any] | None) -> tuple[JobRecord, ...]:
    """The records behind an evidence document of any release.

    Raises InvalidEvidenceError for a run that cannot be read.
    """
    if document is None:
        return ()
    runs: dict[str, list[ArmRun]] = defaultdict(list)
    for arm in [*document["arms"], *document.get("controls", ())]:
        for run in map(read_run, arm["runs"]):
            runs[run.job].append((str(arm["name"]), run))
    prices: Mapping[str, float] = document["plan"]["usd_by_job"]
    jobs = dict.fromkeys([*prices, *runs])
    records = [JobRecord(job, prices.get(job), tuple(runs.get(job, ()))) for job in jobs]
    lost = document["plan"].get("lost_rounds", ())
    # Which job it was that the cloud could not run is not written in the document.
    return (*records, *(JobRecord("", lost_round=number) for number in lost))
