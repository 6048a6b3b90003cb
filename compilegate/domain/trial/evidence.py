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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain.decision import SHADOW
from compilegate.domain.planning.arm_plan import CONTROL, ArmPlan
from compilegate.domain.trial.jobs import ArmRun
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import Workload

WEEKS_PER_YEAR = 52
SPEED, QUALITY = "speed", "quality"


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
    """Everything that a trial's jobs have shown and cost so far."""

    workload: Workload
    plan: RecordedPlan
    runs: Mapping[str, tuple[Mapping[str, Any], ...]]
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
        return frozenset(run["job"] for run in self._all_runs())

    @property
    def next_order(self) -> int:
        """Position in time of the next full run."""
        return sum(run["stage"] == QUALITY for run in self._all_runs())

    @property
    def next_block(self) -> int:
        """Number of the next speed block."""
        return max((run["block"] for run in self._all_runs() if "block" in run), default=-1) + 1

    @property
    def control_blocks(self) -> dict[str, int]:
        """How many blocks each control has had."""
        return {arm.name: len(self.of(arm.name)) for arm in self.plan.arms if arm.role == CONTROL}

    def of(self, arm: str) -> tuple[Mapping[str, Any], ...]:
        """The runs of one arm: its speed blocks, then its full runs in the order of time."""
        return self.runs.get(arm, ())

    def full_runs(self, arm: str) -> int:
        """How many full runs an arm has behind it."""
        return sum(run["stage"] == QUALITY for run in self.of(arm))

    def _all_runs(self) -> Iterator[Mapping[str, Any]]:
        for runs in self.runs.values():
            yield from runs


def assemble(workload: Workload, plan: RecordedPlan, records: Iterable[JobRecord]) -> TrialEvidence:
    """The evidence that these records are; of one job the first runs and the latest price count."""
    kept, by_job = tuple(records), defaultdict[str, list[JobRecord]](list)
    for record in kept:
        by_job[record.job].append(record)
    runs: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    usd: dict[str, float] = {}
    for job, own in sorted(by_job.items()):
        for run in _first_runs(own):
            runs[run.arm].append(run.fields)
        prices = [(record.at, record.usd) for record in own if record.usd is not None]
        if prices:
            usd[job] = max(prices)[1]
    lost = {record.lost_round for record in kept}
    return TrialEvidence(
        workload=workload,
        plan=plan,
        runs={arm: tuple(sorted(own_runs, key=_place)) for arm, own_runs in runs.items()},
        usd_by_job=usd,
        lost_rounds=tuple(sorted(number for number in lost if number is not None)),
        records=kept,
    )


def _first_runs(records: Sequence[JobRecord]) -> tuple[ArmRun, ...]:
    with_runs = [record for record in records if record.runs]
    return min(with_runs, key=lambda record: record.at).runs if with_runs else ()


def _place(run: Mapping[str, Any]) -> tuple[bool, int, str]:
    full = run["stage"] != SPEED
    return full, int(run["order"] if full else run["block"]), str(run["job"])


def to_document(evidence: TrialEvidence) -> dict[str, Any]:
    """The evidence document that is kept and judged (contracts, section 5)."""
    workload, plan = evidence.workload, evidence.plan
    arms = [_arm(arm, evidence) for arm in plan.judged_arms]
    controls = [_arm(arm, evidence) for arm in plan.arms if arm.role == CONTROL]
    return {
        "schema": 1,
        "workload": workload.name,
        "phase": "trial",
        "promoted": None,
        "policy": {**asdict(workload.policy), "quality_runs": plan.quality_mode.used},
        "quality": asdict(workload.quality),
        "usd_per_hour": plan.baseline.usd_per_hour,
        "devices": plan.baseline.devices,
        "runs_per_week": workload.schedule.runs_per_week,
        "runs_remaining": _runs_remaining(evidence),
        "plan": _plan(evidence),
        "arms": arms,
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


def _arm(arm: ArmPlan, evidence: TrialEvidence) -> dict[str, Any]:
    runs = [dict(run) for run in evidence.of(arm.name)]
    steps = [run["full_run_steps"] for run in runs if run.get("full_run_steps")]
    return {
        "name": arm.name,
        "usd_per_hour": arm.usd_per_hour,
        "devices": arm.devices,
        "overrides": arm.overrides,
        "full_run_steps": steps[-1] if steps else None,
        "runs": runs,
    }


def _runs_remaining(evidence: TrialEvidence) -> float:
    """Runs of the next year that production has not already made for the trial."""
    made: int = sum(
        run["stage"] == QUALITY and run["mode"] != SHADOW
        for runs in evidence.runs.values()
        for run in runs
    )
    return max(evidence.workload.schedule.runs_per_week * WEEKS_PER_YEAR - made, 0)


def read_records(document: Mapping[str, Any] | None) -> tuple[JobRecord, ...]:
    """The records behind an evidence document of any release."""
    if document is None:
        return ()
    runs: dict[str, list[ArmRun]] = defaultdict(list)
    for arm in [*document["arms"], *document.get("controls", ())]:
        for run in arm["runs"]:
            runs[str(run["job"])].append(ArmRun(str(arm["name"]), run))
    prices: Mapping[str, float] = document["plan"]["usd_by_job"]
    jobs = dict.fromkeys([*prices, *runs])
    records = [JobRecord(job, prices.get(job), tuple(runs.get(job, ()))) for job in jobs]
    lost = document["plan"].get("lost_rounds", ())
    # Which job it was that the cloud could not run is not written in the document.
    return (*records, *(JobRecord("", lost_round=number) for number in lost))
