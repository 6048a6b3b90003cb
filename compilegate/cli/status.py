"""``compilegate status``: running trials, locks, approvals, production, last decisions."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import typer

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.completion import workload_names
from compilegate.cli.common.outcome import report_command
from compilegate.cli.common.output import emit_json, say, say_line, say_verdict
from compilegate.cli.common.session import (
    Invocation,
    on_cloud,
)
from compilegate.cli.trials.view import waiting_rounds
from compilegate.domain import naming
from compilegate.domain.formats import clock
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.reasons.registry import advice
from compilegate.domain.records.runs import IgnoredJob
from compilegate.domain.records.trials import TrialDecided, TrialFailed
from compilegate.domain.utc import minute
from compilegate.domain.words import run_reason
from compilegate.usecases.drain_mark import drain_mark
from compilegate.usecases.flag.approval import waiting_approvals

LAST = 3
Pasts = Mapping[str, WorkloadHistory]  # by workload
UNDER_WAY, WAITS = "under way", "waits for machines"


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
    cloud = invocation.open_records()
    running = _running(cloud, workload)
    mark = drain_mark(cloud.services.ledger)
    drained = {"at": mark.at, "by": mark.by} if mark is not None and mark.drained else None
    names = [workload] if workload else cloud.overview.workloads()
    pasts = {name: history(cloud.services.ledger.entries(name)) for name in names}
    document = {
        "stage": cloud.stage,
        "drained": drained,
        "running": running,
        "locks": [
            {"workload": lock.workload, "owner": lock.owner, "expires_at": lock.expires_at}
            for lock in cloud.overview.locks()
            if workload in (None, lock.workload)
        ],
        "approvals": _approvals(cloud, names),
        "production": _production(pasts),
        "ignored_jobs": _ignored_jobs(pasts),
        "trials": _trials(cloud, pasts, [item["execution"] for item in running]),
    }
    if invocation.as_json:
        emit_json(document)
    else:
        _show(document)


def _running(cloud: Cloud, workload: str | None) -> list[dict[str, Any]]:
    return [
        {
            "execution": state.name, "arn": state.arn, "started_at": state.started_at,
            "carried": _open_round(state.name, cloud),
        }
        for state in cloud.executions.running()
        if workload is None or state.name.rpartition("-")[0] == workload
    ]  # fmt: skip


def _open_round(execution: str, cloud: Cloud) -> dict[str, Any] | None:
    """The canary runs that a trial waits for, None where it does not wait."""
    workload, _, trial = execution.rpartition("-")
    for round_ in waiting_rounds(workload, cloud):
        if round_.trial == trial:
            arms = [run.arm for run in round_.runs]
            return {"round": round_.round, "arms": arms, "until": round_.until}
    return None


def _trials(cloud: Cloud, pasts: Pasts, running: Collection[str]) -> list[dict[str, Any]]:
    """The last trials of each workload that ended, newest first over all of them."""
    rows: list[dict[str, Any]] = []
    for name, past in pasts.items():
        records: list[TrialDecided | TrialFailed] = [*past.decided, *past.failed]
        ended = [
            {"workload": name, **record.to_entry()}
            for record in sorted(records, key=lambda record: record.key)
        ]
        last = sorted(ended, key=lambda entry: entry["at"], reverse=True)[:LAST]
        # Only the newest: each check is a call.
        if last and _has_no_report(last[0], cloud, running):
            last[0]["report_missing"] = report_command(name, str(last[0]["trial"]), cloud)
        rows += last
    return sorted(rows, key=lambda entry: entry["at"], reverse=True)


def _has_no_report(entry: Mapping[str, Any], cloud: Cloud, running: Collection[str]) -> bool:
    """Whether a decided trial ended without its report; one that runs may still write it."""
    workload, trial = str(entry["workload"]), str(entry["trial"])
    if entry["kind"] != "decision" or naming.execution_name(workload, trial) in running:
        return False
    store = cloud.services.store
    return not store.exists(f"s3://{store.bucket}/{naming.report_key(workload, trial, 'html')}")


def _show(document: Mapping[str, Any]) -> None:
    now = time.time()
    say(f"Stage {document['stage']}", style="bold")
    if document["drained"]:
        since, by = minute(document["drained"]["at"]), document["drained"]["by"]
        say(f"Drained since {since} by {by}; to allow work again: compilegate drain --undo")
    running: Sequence[Mapping[str, Any]] = document["running"]
    say("Running:" if running else "Nothing is running.")
    for item in running:
        say(f"{item['execution']}, for {clock(now - item['started_at'])}", indent=2)
        if item["carried"]:
            arms, until = ", ".join(item["carried"]["arms"]), minute(item["carried"]["until"])
            say(f"waits for production to train {arms}, at most until {until}", indent=4)
    owners = [item["arn"] for item in running]
    for lock in document["locks"]:
        if lock["owner"] not in owners:
            holder = str(lock["owner"]).rpartition(":")[2]
            say(
                f"{lock['workload']} is locked by {holder}, which is not running; the lock expires "
                f"{minute(lock['expires_at'])}."
            )
    _show_approvals(document["approvals"])
    _show_production(document["production"])
    _show_ignored(document["ignored_jobs"])
    trials = document["trials"]
    say("Last trials:" if trials else "No trial has ended yet.")
    for entry in trials:
        name = f"{minute(entry['at'])}  {entry['workload']}-{entry['trial']}"
        say_verdict(name, str(entry.get("verdict") or "failed"), indent=2)
        # The deciding reason comes first, the other gate's after it.
        reasons = entry.get("reasons") or [entry.get("reason") or "no reason was recorded"]
        for why in reasons[:2]:
            say(str(why), indent=4)
        if entry.get("report_missing"):
            say("The decision stands, its report is missing. To write it again:", indent=4)
            say_line(f"      {entry['report_missing']}")


def _approvals(cloud: Cloud, workloads: Collection[str]) -> list[dict[str, Any]]:
    """The pending approvals of these workloads, oldest first."""
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
    return sorted(approvals, key=lambda item: int(item["asked_at"]))


def _show_approvals(items: Sequence[Mapping[str, Any]]) -> None:
    if items:
        say("Waiting for approval:")
    for item in items:
        since, until = minute(item["asked_at"]), minute(item["until"])
        name = f"{item['workload']}-{item['trial']}"
        say(f"{name}: {item['candidate']}, since {since}, until {until}", indent=2)
        say_line(f"    {item['approve']}")
        say_line(f"    {item['reject']}")


def _production(pasts: Pasts) -> list[dict[str, Any]]:
    """The last runs of each workload, running ones included, newest first over all of them."""
    runs = [one for name, past in pasts.items() for one in _runs(name, past)[-LAST:]]
    return sorted(runs, key=lambda one: float(one["at"]), reverse=True)


def _runs(workload: str, past: WorkloadHistory) -> list[dict[str, Any]]:
    ended = [
        {
            "workload": workload, "run": run.run, "job": run.job, "at": run.started_at,
            "arm": run.arm, "why": run.why, "status": run.status, "counts": run.counts,
            "reason": run.reason, "usd": run.usd,
        }
        for run in past.runs
    ]  # fmt: skip
    recent = time.time() - RUN_SECONDS
    begun = [one for one in past.begun if one.run not in past.ended_runs and one.at > recent]
    waits = {wait.run: wait.reason for wait in sorted(past.waits, key=lambda wait: wait.key)}
    under_way = [
        {
            "workload": workload, "run": one.run, "job": None, "at": one.at, "arm": one.arm,
            "why": one.why, "status": WAITS if one.run in waits else UNDER_WAY, "counts": None,
            "reason": waits.get(one.run) or one.flag_told, "usd": None,
        }
        for one in begun
    ]  # fmt: skip
    return sorted([*ended, *under_way], key=lambda one: float(str(one["at"])))


def _show_production(items: Sequence[Mapping[str, Any]]) -> None:
    if items:
        say("Last production runs:")
    for item in items:
        what = f"{item['arm']}, {str(item['status']).lower()}"
        say(f"{minute(item['at'])}  {item['workload']}-{item['run']}: {what}", indent=2)
        say(item["reason"] or run_reason(str(item["why"])), indent=4)


def _ignored_jobs(pasts: Pasts) -> list[dict[str, Any]]:
    """The last jobs of each workload that did not count, since it was registered last."""
    rows: list[dict[str, Any]] = []
    for name, past in pasts.items():
        since = past.registrations[-1].at if past.registrations else 0
        ignored = [one for one in past.records if isinstance(one, IgnoredJob) and one.at >= since]
        last = sorted(ignored, key=lambda one: one.at)[-LAST:]
        rows += [{"workload": name, **one.to_entry(), "fix": advice(one.code)} for one in last]
    return sorted(rows, key=lambda one: int(one["at"]), reverse=True)


def _show_ignored(items: Sequence[Mapping[str, Any]]) -> None:
    if items:
        say("Jobs that carry a workload's tags and did not count:")
    for item in items:
        what = f"{item['workload']}: {item['job']} ran as {item['role']} ({item['code']})"
        say(f"{minute(item['at'])}  {what}", indent=2)
    for fix in dict.fromkeys(str(item["fix"]) for item in items):
        say(fix, indent=4)
