"""``compilegate status``: running trials, locks, approvals, production, last decisions."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from compilegate.cli.common.cloud import Cloud, check_workload_exists
from compilegate.cli.common.session import Invocation, on_cloud, workload_names
from compilegate.domain import naming
from compilegate.domain.claims import run_reason
from compilegate.domain.fleet.listing import URGENCY, Filters, in_order
from compilegate.domain.fleet.row import APPROVE, LOCK_STAYS
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.reasons import advice
from compilegate.domain.records.production import IgnoredJob
from compilegate.domain.records.trials import TrialDecided, TrialFailed
from compilegate.ports import Services
from compilegate.usecases.drain_mark import drain_mark
from compilegate.usecases.equivalence import revoked_classes
from compilegate.usecases.flag.approval import waiting_approvals
from compilegate.usecases.fleet.project import Fleet, read_fleet
from compilegate.usecases.records import at_once
from compilegate_operating.listing import SHOWN, TEMPLATES, list_document, screen_of

# What ``compilegate status`` knows of a stage, read from its records; times are epoch seconds.

LAST = 3
# Of more workloads, runs and trials are not looked up; nor more approvals and locks than these.
DETAILED, ASKED, LOCKED = 20, 5, 500
# Parts of the document that are empty where a workload has none of it.
OF_A_WORKLOAD = ("running", "locks", "approvals", "production", "ignored_jobs", "trials")
Document = dict[str, Any]
Histories = Mapping[str, WorkloadHistory]  # by workload
UNDER_WAY, WAITS = "under way", "waits for machines"


def read_status(cloud: Cloud, workload: str | None, fleet: Fleet) -> Document:
    """The stage as it is now; of one ``workload`` where it is given.

    ``undetailed`` is of how many workloads runs, trials and ignored jobs were not looked up.
    """
    services, now = cloud.services, cloud.services.clock.now()
    names = [workload] if workload else fleet.names
    detailed = names if len(names) <= DETAILED else []
    recent = at_once(lambda name: _recent_history(name, services), detailed)
    histories = dict(zip(detailed, recent, strict=True))
    running = _running(cloud, workload, fleet, histories)
    mark = drain_mark(services.ledger)
    urgent = [
        (row, [need.code for need in row.due(now)])
        for row in in_order(fleet.rows, URGENCY, now, reverse=False)
    ]
    asked = detailed or [row.workload for row, due in urgent if APPROVE in due][:ASKED]
    locked = detailed or [row.workload for row, due in urgent if row.trial or LOCK_STAYS in due]
    return {
        "stage": cloud.stage,
        "drained": {"at": mark.at, "by": mark.by} if mark.drained else None,
        "revoked_classes": [one.to_entry() for one in revoked_classes(services.ledger)],
        "running": running,
        "locks": [asdict(lock) for lock in services.locks.locks_of(locked[:LOCKED])],
        "approvals": _approvals(cloud, asked),
        # Running ones included; newest first over all workloads.
        "production": _newest_first(
            [run for history in histories.items() for run in _runs(*history)]
        ),
        "ignored_jobs": _newest_first(
            [job for history in histories.items() for job in _ignored_jobs(*history)]
        ),
        "trials": _trials(cloud, histories, [one["execution"] for one in running]),
        "undetailed": len(names) - len(detailed),
    }


def _recent_history(workload: str, services: Services) -> WorkloadHistory:
    """A workload's history without runs that are too old to be among its last or under way."""
    recent = services.ledger.history(workload, since=services.clock.now() - RUN_SECONDS)
    return recent if len(recent.runs) >= LAST else services.ledger.history(workload)


def _running(
    cloud: Cloud, workload: str | None, fleet: Fleet, histories: Histories
) -> list[Document]:
    """Executions in progress, with the phase that the row names, where it names the trial.

    ``canary_round`` is what one waits for, None where none was looked up.
    """
    phases = {(row.workload, row.trial): row.phase for row in fleet.rows}
    running: list[Document] = []
    for state in cloud.executions.running():
        name, _, trial = state.name.rpartition("-")
        rounds = [
            {"round": one.round, "arms": [run.arm for run in one.runs], "until": one.until}
            for one in histories.get(name, WorkloadHistory()).rounds_of(trial)
            if one.closed is None and cloud.services.clock.now() < one.until
        ]
        if workload in (None, name):
            running.append({
                "execution": state.name, "arn": state.arn, "started_at": state.started_at,
                "phase": phases.get((name, trial)), "canary_round": next(iter(rounds), None),
            })  # fmt: skip
    return running


def _trials(cloud: Cloud, histories: Histories, running: Collection[str]) -> list[Document]:
    """The last trials of each workload that ended, newest first over all of them.

    ``report_missing`` is the command that writes the report of a decision without one, where the
    trial does not run: it may still write it.
    """
    rows: list[Document] = []
    store = cloud.services.store
    for name, history in histories.items():
        records: list[TrialDecided | TrialFailed] = [*history.decided, *history.failed]
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
            own[0]["report_missing"] = cloud.command(f"report {name} --trial {newest.trial}")
        rows += own
    return _newest_first(rows)


def _approvals(cloud: Cloud, workloads: Sequence[str]) -> list[Document]:
    """The pending approvals of these workloads, oldest first, and the commands that answer them."""
    questions = at_once(lambda name: waiting_approvals(name, cloud.services.ledger), workloads)
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
        for name, waiting in zip(workloads, questions, strict=True)
        for one in waiting
    ]
    return sorted(approvals, key=lambda one: one["asked_at"])


def _runs(workload: str, history: WorkloadHistory) -> list[Document]:
    """The last production runs, oldest first; of one under way, job, counts and USD are None."""
    ended = [
        {
            "workload": workload, "run": run.run, "job": run.job, "at": run.started_at,
            "arm": run.arm, "why": run.why, "status": run.status, "counts": run.counts,
            "reason": run.reason, "usd": run.usd,
        }
        for run in history.runs
    ]  # fmt: skip
    recent = time.time() - RUN_SECONDS
    waits = {wait.run: wait.reason for wait in sorted(history.waits, key=lambda wait: wait.key)}
    under_way = [
        {
            "workload": workload, "run": one.run, "job": None, "at": one.at,
            "arm": one.arm, "why": one.why, "status": WAITS if one.run in waits else UNDER_WAY,
            "counts": None, "reason": waits.get(one.run) or one.flag_explanation, "usd": None,
        }
        for one in history.begun
        if one.run not in history.ended_runs and one.at > recent
    ]  # fmt: skip
    rows: list[Document] = [*ended, *under_way]
    return sorted(rows, key=lambda one: one["at"])[-LAST:]


def _ignored_jobs(workload: str, history: WorkloadHistory) -> list[Document]:
    """The last jobs that did not count, since the workload was registered last."""
    since = history.registrations[-1].at if history.registrations else 0
    ignored = [one for one in history.records if isinstance(one, IgnoredJob) and one.at >= since]
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
    """Show what runs, what waits, the last runs and decisions.

    Running trials, locks, pending approvals, the first 20 workloads of `compilegate list`. Last
    production runs and decisions are of one workload, or of all where there are up to 20.

    \b
    compilegate status
    compilegate status bert-docs --json

    Exit code 2 for a workload that the stage does not have.
    """
    cloud = invocation.open_records(workload)
    fleet = Fleet() if workload else read_fleet(cloud.services)
    document = read_status(cloud, workload, fleet)
    # A trial that has just been started is in no record yet.
    if workload is not None and not any(document[part] for part in OF_A_WORKLOAD):
        check_workload_exists(workload, cloud)
    more: Document = {}
    if workload is None:
        document["list"], listed = list_document(cloud, fleet, Filters(), limit=SHOWN)
        more = {**document["list"], **screen_of(document["list"], listed, cloud)}
    invocation.answer(
        document, TEMPLATES / "status", now=time.time(), run_reason=run_reason, most=SHOWN, **more
    )
