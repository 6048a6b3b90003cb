"""What ``compilegate status`` knows of a stage, read from its records; times are epoch seconds."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.adapters.dynamodb import Lock
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import report_command
from compilegate.cli.trials.view import waiting_rounds
from compilegate.domain import naming
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.reasons import advice
from compilegate.domain.records.ledger import DrainMark
from compilegate.domain.records.runs import IgnoredJob
from compilegate.domain.records.trials import TrialDecided, TrialFailed
from compilegate.usecases.drain_mark import drain_mark
from compilegate.usecases.flag.approval import waiting_approvals

LAST = 3
Pasts = Mapping[str, WorkloadHistory]  # by workload
UNDER_WAY, WAITS = "under way", "waits for machines"


@dataclass(frozen=True)
class AwaitedRound:
    """The canary runs that a trial waits for."""

    round: int
    arms: tuple[str, ...]
    until: int


@dataclass(frozen=True)
class RunningTrial:
    """An execution in progress; ``carried`` None where it does not wait for production."""

    execution: str
    arn: str
    started_at: float
    carried: AwaitedRound | None


@dataclass(frozen=True)
class PendingApproval:
    """A promotion that waits for a person, and the commands that answer it."""

    workload: str
    trial: str
    candidate: str | None
    asked_at: int
    until: int
    approve: str
    reject: str


@dataclass(frozen=True)
class ProductionRow:
    """A production run; of one under way, job, counts and USD are None."""

    workload: str
    run: str
    job: str | None
    at: float
    arm: str
    why: str
    status: str
    counts: bool | None
    reason: str | None
    usd: float | None


@dataclass(frozen=True)
class Ignored:
    """A job that carries a workload's tags and did not count."""

    workload: str
    job: IgnoredJob

    @property
    def fix(self) -> str:
        """What helps."""
        return advice(self.job.code)

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {"workload": self.workload, **self.job.to_entry(), "fix": self.fix}


@dataclass(frozen=True)
class EndedTrial:
    """``report_command`` writes the report of a decision whose own is missing."""

    workload: str
    record: TrialDecided | TrialFailed
    report_command: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        missing = {"report_missing": self.report_command} if self.report_command else {}
        return {"workload": self.workload, **self.record.to_entry(), **missing}


@dataclass(frozen=True)
class StageStatus:
    """All of it; ``drained`` None where work may start."""

    stage: str
    drained: DrainMark | None
    running: tuple[RunningTrial, ...]
    locks: tuple[Lock, ...]
    approvals: tuple[PendingApproval, ...]
    production: tuple[ProductionRow, ...]
    ignored_jobs: tuple[Ignored, ...]
    trials: tuple[EndedTrial, ...]

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        mark = self.drained
        return {
            "stage": self.stage,
            "drained": None if mark is None else {"at": mark.at, "by": mark.by},
            "running": [asdict(one) for one in self.running],
            "locks": [asdict(one) for one in self.locks],
            "approvals": [asdict(one) for one in self.approvals],
            "production": [asdict(one) for one in self.production],
            "ignored_jobs": [one.to_dict() for one in self.ignored_jobs],
            "trials": [one.to_dict() for one in self.trials],
        }


def read_status(cloud: Cloud, workload: str | None) -> StageStatus:
    """The stage as it is now; of one ``workload`` where it is given."""
    running = _running(cloud, workload)
    mark = drain_mark(cloud.services.ledger)
    names = [workload] if workload else cloud.overview.workloads()
    pasts = {name: cloud.services.ledger.history(name) for name in names}
    locks = cloud.overview.locks()
    return StageStatus(
        stage=cloud.stage,
        drained=mark if mark is not None and mark.drained else None,
        running=running,
        locks=tuple(lock for lock in locks if workload in (None, lock.workload)),
        approvals=_approvals(cloud, names),
        production=_production(pasts),
        ignored_jobs=_ignored_jobs(pasts),
        trials=_trials(cloud, pasts, [one.execution for one in running]),
    )


def _running(cloud: Cloud, workload: str | None) -> tuple[RunningTrial, ...]:
    return tuple(
        RunningTrial(state.name, state.arn, state.started_at, _open_round(state.name, cloud))
        for state in cloud.executions.running()
        if workload is None or state.name.rpartition("-")[0] == workload
    )


def _open_round(execution: str, cloud: Cloud) -> AwaitedRound | None:
    workload, _, trial = execution.rpartition("-")
    for round_ in waiting_rounds(workload, cloud):
        if round_.trial == trial:
            arms = tuple(run.arm for run in round_.runs)
            return AwaitedRound(round_.round, arms, round_.until)
    return None


def _trials(cloud: Cloud, pasts: Pasts, running: Collection[str]) -> tuple[EndedTrial, ...]:
    """The last trials of each workload that ended, newest first over all of them."""
    rows: list[EndedTrial] = []
    for name, past in pasts.items():
        records: list[TrialDecided | TrialFailed] = [*past.decided, *past.failed]
        records.sort(key=lambda record: record.key)
        records.sort(key=lambda record: record.at, reverse=True)
        for place, record in enumerate(records[:LAST]):
            # Only the newest: each check is a call.
            lacks = place == 0 and _has_no_report(name, record, cloud, running)
            command = report_command(name, record.trial, cloud) if lacks else None
            rows.append(EndedTrial(name, record, command))
    return tuple(sorted(rows, key=lambda row: row.record.at, reverse=True))


def _has_no_report(
    workload: str, record: TrialDecided | TrialFailed, cloud: Cloud, running: Collection[str]
) -> bool:
    """Whether a decided trial ended without its report; one that runs may still write it."""
    trial = record.trial
    if isinstance(record, TrialFailed) or naming.execution_name(workload, trial) in running:
        return False
    store = cloud.services.store
    return not store.exists(f"s3://{store.bucket}/{naming.report_key(workload, trial, 'html')}")


def _approvals(cloud: Cloud, workloads: Collection[str]) -> tuple[PendingApproval, ...]:
    """The pending approvals of these workloads, oldest first."""
    where = "--local" if cloud.is_local else f"--stage {cloud.stage}"
    approvals = [
        PendingApproval(
            workload=name,
            trial=one.trial,
            candidate=one.asked.candidate,
            asked_at=one.asked.at,
            until=one.asked.until,
            approve=f'compilegate flag approve {name} --reason "..." {where}',
            reject=f'compilegate flag reject {name} --reason "..." {where}',
        )
        for name in workloads
        for one in waiting_approvals(name, cloud.services.ledger)
    ]
    return tuple(sorted(approvals, key=lambda one: one.asked_at))


def _production(pasts: Pasts) -> tuple[ProductionRow, ...]:
    """The last runs of each workload, running ones included, newest first over all of them."""
    runs = [one for name, past in pasts.items() for one in _runs(name, past)[-LAST:]]
    return tuple(sorted(runs, key=lambda one: one.at, reverse=True))


def _runs(workload: str, past: WorkloadHistory) -> list[ProductionRow]:
    ended = [
        ProductionRow(
            workload, run.run, run.job, run.started_at, run.arm, run.why, run.status, run.counts,
            run.reason, run.usd,
        )
        for run in past.runs
    ]  # fmt: skip
    recent = time.time() - RUN_SECONDS
    begun = [one for one in past.begun if one.run not in past.ended_runs and one.at > recent]
    waits = {wait.run: wait.reason for wait in sorted(past.waits, key=lambda wait: wait.key)}
    under_way = [
        ProductionRow(
            workload, one.run, None, one.at, one.arm, one.why,
            WAITS if one.run in waits else UNDER_WAY, None,
            waits.get(one.run) or one.flag_told, None,
        )
        for one in begun
    ]  # fmt: skip
    return sorted([*ended, *under_way], key=lambda one: one.at)


def _ignored_jobs(pasts: Pasts) -> tuple[Ignored, ...]:
    """The last jobs of each workload that did not count, since it was registered last."""
    rows: list[Ignored] = []
    for name, past in pasts.items():
        since = past.registrations[-1].at if past.registrations else 0
        ignored = [one for one in past.records if isinstance(one, IgnoredJob) and one.at >= since]
        rows += [Ignored(name, one) for one in sorted(ignored, key=lambda one: one.at)[-LAST:]]
    return tuple(sorted(rows, key=lambda row: row.job.at, reverse=True))
