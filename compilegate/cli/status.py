"""``compilegate status``: running trials, locks, approvals, production, last decisions."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import report_command
from compilegate.cli.common.session import Invocation, on_cloud, workload_names
from compilegate.cli.trials import waiting_rounds
from compilegate.domain import naming
from compilegate.domain.claims import run_reason
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.reasons import advice
from compilegate.domain.records.production import IgnoredJob
from compilegate.domain.records.trials import TrialDecided, TrialFailed
from compilegate.usecases.drain_mark import drain_mark
from compilegate.usecases.flag.approval import waiting_approvals

# What ``compilegate status`` knows of a stage, read from its records; times are epoch seconds.

LAST = 3
Document = dict[str, Any]
Pasts = Mapping[str, WorkloadHistory]  # by workload
UNDER_WAY, WAITS = "under way", "waits for machines"


def read_status(cloud: Cloud, workload: str | None) -> Document:
    """The stage as it is now; of one ``workload`` where it is given."""
    running = _running(cloud, workload)
    mark = drain_mark(cloud.services.ledger)
    names = [workload] if workload else cloud.overview.workloads()
    pasts = {name: cloud.services.ledger.history(name) for name in names}
    locks = cloud.overview.locks()
    return {
        "stage": cloud.stage,
        "drained": {"at": mark.at, "by": mark.by} if mark is not None and mark.drained else None,
        "running": running,
        "locks": [asdict(lock) for lock in locks if workload in (None, lock.workload)],
        "approvals": _approvals(cloud, names),
        # Running ones included; newest first over all workloads.
        "production": _newest_first([run for past in pasts.items() for run in _runs(*past)]),
        "ignored_jobs": _newest_first(
            [job for past in pasts.items() for job in _ignored_jobs(*past)]
        ),
        "trials": _trials(cloud, pasts, [one["execution"] for one in running]),
    }


def _running(cloud: Cloud, workload: str | None) -> list[Document]:
    """Executions in progress; ``carried`` are the canary runs that one waits for."""
    rows: list[Document] = []
    for state in cloud.executions.running():
        name, _, trial = state.name.rpartition("-")
        if workload in (None, name):
            carried = next(
                (
                    {
                        "round": one.round, "arms": [run.arm for run in one.runs],
                        "until": one.until,
                    }
                    for one in waiting_rounds(name, cloud)
                    if one.trial == trial
                ),
                None,
            )  # fmt: skip
            rows.append({
                "execution": state.name, "arn": state.arn, "started_at": state.started_at,
                "carried": carried,
            })  # fmt: skip
    return rows


def _trials(cloud: Cloud, pasts: Pasts, running: Collection[str]) -> list[Document]:
    """The last trials of each workload that ended, newest first over all of them.

    ``report_missing`` is the command that writes the report of a decision without one, where the
    trial does not run: it may still write it.
    """
    rows: list[Document] = []
    store = cloud.services.store
    for name, past in pasts.items():
        records: list[TrialDecided | TrialFailed] = [*past.decided, *past.failed]
        records.sort(key=lambda record: record.key)
        records.sort(key=lambda record: record.at, reverse=True)
        own: list[Document] = [{"workload": name, **one.to_entry()} for one in records[:LAST]]
        newest = records[0] if records else None  # only of the newest: each check is a call
        if (
            isinstance(newest, TrialDecided)
            and naming.execution_name(name, newest.trial) not in running
            and not store.exists(
                f"s3://{store.bucket}/{naming.report_key(name, newest.trial, 'html')}"
            )
        ):
            own[0]["report_missing"] = report_command(name, newest.trial, cloud)
        rows += own
    return _newest_first(rows)


def _approvals(cloud: Cloud, workloads: Collection[str]) -> list[Document]:
    """The pending approvals of these workloads, oldest first, and the commands that answer them."""
    where = "--local" if cloud.is_local else f"--stage {cloud.stage}"
    approvals = [
        {
            "workload": name,
            "trial": one.trial,
            "candidate": one.asked.candidate,
            "asked_at": one.asked.at,
            "until": one.asked.until,
            "approve": f'compilegate flag approve {name} --reason "..." {where}',
            "reject": f'compilegate flag reject {name} --reason "..." {where}',
        }
        for name in workloads
        for one in waiting_approvals(name, cloud.services.ledger)
    ]
    return sorted(approvals, key=lambda one: one["asked_at"])


def _runs(workload: str, past: WorkloadHistory) -> list[Document]:
    """The last production runs, oldest first; of one under way, job, counts and USD are None."""
    ended = [
        {
            "workload": workload, "run": run.run, "job": run.job, "at": run.started_at,
            "arm": run.arm, "why": run.why, "status": run.status, "counts": run.counts,
            "reason": run.reason, "usd": run.usd,
        }
        for run in past.runs
    ]  # fmt: skip
    recent = time.time() - RUN_SECONDS
    waits = {wait.run: wait.reason for wait in sorted(past.waits, key=lambda wait: wait.key)}
    under_way = [
        {
            "workload": workload, "run": one.run, "job": None, "at": one.at,
            "arm": one.arm, "why": one.why, "status": WAITS if one.run in waits else UNDER_WAY,
            "counts": None, "reason": waits.get(one.run) or one.flag_told, "usd": None,
        }
        for one in past.begun
        if one.run not in past.ended_runs and one.at > recent
    ]  # fmt: skip
    rows: list[Document] = [*ended, *under_way]
    return sorted(rows, key=lambda one: one["at"])[-LAST:]


def _ignored_jobs(workload: str, past: WorkloadHistory) -> list[Document]:
    """The last jobs that did not count, since the workload was registered last."""
    since = past.registrations[-1].at if past.registrations else 0
    ignored = [one for one in past.records if isinstance(one, IgnoredJob) and one.at >= since]
    return [
        {"workload": workload, **one.to_entry(), "fix": advice(one.code)}
        for one in sorted(ignored, key=lambda one: one.at)[-LAST:]
    ]


def _newest_first(rows: list[Document]) -> list[Document]:
    return sorted(rows, key=lambda row: row["at"], reverse=True)


@on_cloud
def status(
    invocation: Invocation,
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD", help="Only this workload.", autocompletion=workload_names
        ),
    ] = None,
) -> None:
    """Show trials, locks, approvals, runs and decisions.

    Running trials, locks, pending approvals, production runs and the last decisions.

    \b
    compilegate status
    compilegate status bert-docs --json
    """
    document = read_status(invocation.open_records(), workload)
    invocation.answer(document, "status", now=time.time(), run_reason=run_reason)
