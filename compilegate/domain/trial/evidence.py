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
from functools import cached_property
from operator import attrgetter
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import CANARY, SHADOW
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.flag import DIGEST, CompileBundle
from compilegate.domain.judging.evidence import TRIAL, Arm, Evidence, FullRun, SpeedRun, TrialPlan
from compilegate.domain.judging.evidence_file import read_evidence, read_run
from compilegate.domain.judging.validity import alike_but_for_time
from compilegate.domain.optional import with_known
from compilegate.domain.planning.arms import CONTROL, ArmPlan
from compilegate.domain.production.canary import CHANGED, OVERDUE, RETIRED, canary_runs
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.spreads import ASSUMED
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import BASELINE, Policy, Workload

# Records of a trial's jobs, and how they are read from the evidence document that keeps them.
#
# A run that cannot be read stays a record: nothing that a job left is lost, and the trial is
# invalid.

# Of a run's ``compile_bundle`` (training/compilegate_runtime/compile_bundle.py).
SAVED = "saved"

# One run, and the name of its arm.
ArmRun = tuple[str, SpeedRun | FullRun]


@dataclass(frozen=True)
class UnreadableRun:
    """A run that breaks its contract, and why; its record is kept as it is."""

    arm: str
    record: Any
    why: str


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

    def with_run(self, arm: str, record: Any, path: str) -> JobRecord:
        """The job's record with this run, which may not be readable."""
        try:
            return replace(self, runs=(*self.runs, (arm, read_run(record, path))))
        except InvalidEvidenceError as error:
            broken = UnreadableRun(arm, record, str(error))
            return replace(self, unreadable=(*self.unreadable, broken))


@dataclass(frozen=True)
class TrialRecords:
    """Everything that is recorded: the jobs, and the rounds in which the cloud failed one.

    ``waited_rounds`` are those of which a job only waited for the account's quota. ``equivalence``
    is the equivalence check's table as the latest round knew it, None where there is none.
    """

    jobs: tuple[JobRecord, ...] = ()
    lost_rounds: tuple[int, ...] = ()
    waited_rounds: tuple[int, ...] = ()
    equivalence: Mapping[str, Any] | None = None

    @property
    def with_runs(self) -> frozenset[str]:
        """Jobs that have left a run."""
        return frozenset(record.job for record in self.jobs if record.has_runs)


def read_records(document: Mapping[str, Any] | None) -> TrialRecords:
    """The records behind an evidence document; what cannot be read is kept."""
    if document is None:
        return TrialRecords()
    plan = document["plan"]
    prices, unmeasured = plan["usd_by_job"], plan.get("unmeasured_by_job", {})
    by_job = {
        job: JobRecord(job, prices.get(job), unmeasured=tuple(unmeasured.get(job, ())))
        for job in {**prices, **unmeasured}
    }
    for key in ("arms", "controls"):
        for index, arm in enumerate(document.get(key, ())):
            for number, record in enumerate(arm["runs"]):
                path = f"{key}[{index}].runs[{number}]"
                job = str(record.get("job") or "") if isinstance(record, Mapping) else ""
                own = by_job.get(job, JobRecord(job))
                by_job[job] = own.with_run(str(arm["name"]), record, path)
    lost, waited = (tuple(plan.get(name, ())) for name in ("lost_rounds", "waited_rounds"))
    return TrialRecords(tuple(by_job.values()), lost, waited, document.get("equivalence"))


def saved_bundle(evidence: Mapping[str, Any], arm: str, workload: str) -> CompileBundle | None:
    """The bundle of compiled code that the arm's latest run left, None where none left one."""
    runs = [run for one in evidence.get("arms", ()) if one["name"] == arm for run in one["runs"]]
    for run in reversed(runs):
        bundle = run.get("compile_bundle") or {}
        digest = str(bundle.get("sha256"))
        saved = run.get("finished") is True and bundle.get("state") == SAVED
        if saved and DIGEST.pattern.fullmatch(digest):
            folder = f"{naming.compile_cache_prefix(workload)}{naming.COMPILE_BUNDLES}"
            return CompileBundle(f"{folder}/{digest}.json", digest)
    return None


@dataclass(frozen=True)
class TrialEvidence:
    """What a trial's jobs have shown and cost so far: all of it follows from their records."""

    workload: Workload
    plan: RecordedPlan
    records: TrialRecords

    def with_records(self, *more: JobRecord) -> TrialEvidence:
        """The evidence that these records are as well."""
        return replace(self, records=replace(self.records, jobs=(*self.records.jobs, *more)))

    @cached_property
    def jobs(self) -> tuple[JobRecord, ...]:
        """One record of each job: of several the first runs and the latest price count."""
        by_job = defaultdict[str, list[JobRecord]](list)
        for record in self.records.jobs:
            by_job[record.job].append(record)
        merged = []
        for _, own in sorted(by_job.items()):
            first = min([one for one in own if one.has_runs] or own, key=attrgetter("at"))
            prices = [(one.at, usd) for one, usd in with_known(own, lambda one: one.usd)]
            merged.append(replace(first, usd=max(prices)[1] if prices else None))
        return tuple(merged)

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """Every arm of the plan, with its runs in the order of time."""
        by_arm = defaultdict[str, list[SpeedRun | FullRun]](list)
        for name, run in (one for job in self.jobs for one in job.runs):
            by_arm[name].append(run)
        return tuple(_arm(arm, by_arm[arm.name]) for arm in self.plan.arms)

    @property
    def unreadable(self) -> list[UnreadableRun]:
        """Runs that make the trial invalid."""
        return [run for job in self.jobs for run in job.unreadable]

    @property
    def lost_rounds(self) -> tuple[int, ...]:
        """Rounds in which the cloud could not run a job, in order."""
        return tuple(sorted(set(self.records.lost_rounds)))

    @property
    def waited_rounds(self) -> tuple[int, ...]:
        """Rounds that waited for the account's quota, in order."""
        return tuple(sorted(set(self.records.waited_rounds)))

    @property
    def usd_by_job(self) -> dict[str, float]:
        """What each job that is paid for has cost."""
        return {job.job: usd for job, usd in with_known(self.jobs, lambda job: job.usd)}

    @property
    def spent_usd(self) -> float:
        """What the trial's jobs have cost."""
        return math.fsum(self.usd_by_job.values())

    def jobs_without(self, arm: str) -> list[str]:
        """Speed jobs that completed and left no segment of the arm that they had to measure."""
        return [job.job for job in self.jobs if arm in job.unmeasured]

    @property
    def next_order(self) -> int:
        """Position in time of the next full run."""
        full = [
            run
            for run in self.unreadable
            if isinstance(run.record, Mapping) and run.record.get("stage") == "quality"
        ]
        return sum(len(arm.full_runs) for arm in self.arms) + len(full)

    @property
    def next_block(self) -> int:
        """Number of the next speed block."""
        return max((run.block for arm in self.arms for run in arm.speed), default=-1) + 1

    @property
    def control_blocks(self) -> dict[str, int]:
        """How many blocks each control has had."""
        return {arm.name: len(arm.speed) for arm in self.arms if self._is_control(arm)}

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    def _is_control(self, arm: Arm) -> bool:
        return self.plan.arm(arm.name).role == CONTROL

    def to_evidence(self) -> Evidence:
        """What the judge reads of a trial: its document.

        Raises InvalidEvidenceError where that breaks its contract.
        """
        if self.unreadable:
            raise InvalidEvidenceError(self.unreadable[0].why)
        return read_evidence(self.to_document())

    def to_document(self) -> dict[str, Any]:
        """The evidence document that is kept (docs/contracts.md, The evidence document)."""
        workload, plan, mode = self.workload, self.plan, self.plan.quality_mode
        # Runs of the year that began with the trial, and those that production made for it.
        at_start = workload.schedule.runs_per_week * WEEKS_PER_YEAR
        made = sum(run.mode != SHADOW for arm in self.arms for run in arm.full_runs)
        unmeasured = {job.job: list(job.unmeasured) for job in self.jobs if job.unmeasured}
        controls = [self._arm_document(arm) for arm in self.arms if self._is_control(arm)]
        table = self.records.equivalence
        trial_plan = TrialPlan(
            speed_steps=plan.speed_steps,
            blocks_per_round=plan.blocks_per_round,
            max_blocks=plan.max_blocks,
            production_beside=mode.beside,
            asked_quality_runs=mode.asked,
            runs_as_shadow_because=mode.why,
            usd_per_block=plan.usd_per_block,
            usd_per_quality_run=plan.usd_per_quality_run,
            spent_usd=self.spent_usd,
            runs_at_start=at_start,
            spreads=plan.spreads,
            pairs=plan.pairs,
        )
        absent = {"spreads": plan.spreads == ASSUMED, "pairs": not plan.pairs}
        recorded = {key: one for key, one in asdict(trial_plan).items() if not absent.get(key)}
        # The holdback is of production after the probation: no decision depends on it.
        policy = replace(workload.policy, quality_runs=mode.used, holdback=Policy.holdback)
        return {
            "schema": 1,
            "workload": workload.name,
            "phase": TRIAL,
            "promoted": None,
            "policy": policy.to_dict(),
            "quality": workload.to_dict()["quality"],
            "usd_per_hour": plan.baseline.usd_per_hour,
            "devices": plan.baseline.devices,
            "runs_per_week": workload.schedule.runs_per_week,
            "run_hours": workload.schedule.run_hours,
            "runs_remaining": max(at_start - made, 0),
            "plan": {
                **recorded,
                "usd_by_job": self.usd_by_job,
                **({"lost_rounds": list(self.lost_rounds)} if self.lost_rounds else {}),
                **({"waited_rounds": list(self.waited_rounds)} if self.waited_rounds else {}),
                **({"unmeasured_by_job": unmeasured} if unmeasured else {}),
            },
            "arms": [self._arm_document(arm) for arm in self.arms if not self._is_control(arm)],
            **({"controls": controls} if controls else {}),
            **({"on_top_of": plan.on_top_of} if plan.on_top_of else {}),
            **({} if table is None else {"equivalence": table}),
        }

    def _arm_document(self, arm: Arm) -> dict[str, Any]:
        unreadable = [run.record for run in self.unreadable if run.arm == arm.name]
        return {
            "name": arm.name,
            "usd_per_hour": arm.usd_per_hour,
            "devices": arm.devices,
            "overrides": arm.overrides,
            "full_run_steps": arm.full_run_steps,
            "runs": [*(run.record for run in arm.runs), *unreadable],
        }


def _arm(arm: ArmPlan, runs: Sequence[SpeedRun | FullRun]) -> Arm:
    """The arm with its runs, which come in the order of their jobs, in the order of time."""
    speed = sorted((run for run in runs if isinstance(run, SpeedRun)), key=attrgetter("block"))
    full = sorted((run for run in runs if isinstance(run, FullRun)), key=attrgetter("order"))
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
    """The production runs of the trial's job that are evidence, in the order of time."""
    plan = evidence.plan
    if not plan.runs_in_production:
        return
    names = {arm.name for arm in plan.judged_arms}
    digest = TrainedJob(evidence.workload, code).digest
    begun = production.history.begun
    same_job = {one.run for one in begun if production.jobs.get(one.spec_key) == digest}
    runs = [(run, CANARY) for run in canary_runs(production.history, trial)]
    runs += [(run, PRODUCTION) for run in _beside(production, evidence)]
    order, kept = evidence.next_order, evidence.records.with_runs
    for run, mode in sorted(runs, key=lambda one: (one[0].started_at, one[0].job)):
        if run.arm not in names or run.run not in same_job:
            continue
        failed = run.arm != BASELINE and not run.finished
        usd = _usd(run, plan.arm(run.arm).usd_per_hour) if failed else None
        record = JobRecord(run.job, usd, at=now)
        if run.job not in kept:
            # As the judge reads it; what it cost production is kept for the report.
            own = {
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
            record, order = record.with_run(run.arm, own, run.job), order + 1
        yield record


def _beside(production: ProductionFacts, evidence: TrialEvidence) -> Iterator[ProductionRun]:
    """Production's own baseline runs since the trial began.

    One that crashed says nothing of the candidate and nothing new of the baseline. One that is
    made of something else is not evidence and does not make the trial's invalid.
    """
    baseline = evidence.arm(BASELINE)
    measured = [*baseline.speed, *(run for run in baseline.quality if run.mode != PRODUCTION)]
    if not evidence.plan.quality_mode.beside or not measured:
        return
    reference = next((run.fingerprint for run in measured if run.fingerprint), None)
    for run in production.history.runs:
        own = run.arm == BASELINE and run.canary is None and run.counts and run.finished
        before = run.started_at < evidence.plan.started_at
        if not own or before:
            continue
        if reference is None or alike_but_for_time(run.result.get("fingerprint") or {}, reference):
            yield run


def _usd(run: ProductionRun, usd_per_hour: float) -> float:
    """What the run cost, by its own record, else by its billed or elapsed time."""
    if run.usd is not None:
        return run.usd
    seconds = run.billable_seconds
    if seconds is None:
        seconds = max(run.ended_at - run.started_at, 0.0)
    return seconds / 3600 * usd_per_hour
