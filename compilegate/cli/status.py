"""``compilegate status``: what runs, is locked or waits; what production did; what was decided."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import typer

from compilegate.cli import project
from compilegate.cli.cloud import Cloud
from compilegate.cli.doors import open_cloud
from compilegate.cli.options import JsonOption, LocalOption, StageOption
from compilegate.cli.outcome import report_command
from compilegate.cli.output import emit_json, say, say_line, say_verdict
from compilegate.cli.production_status import production, show_production
from compilegate.cli.screen import clock
from compilegate.cli.shell import session
from compilegate.cli.trial_view import waiting_rounds
from compilegate.cli.waiting import show_waiting, waiting
from compilegate.domain import naming
from compilegate.domain.utc import minute
from compilegate.usecases.drain_mark import drain_mark

LAST = 3


def status(
    ctx: typer.Context,
    workload: Annotated[
        str | None, typer.Argument(metavar="WORKLOAD", help="Only this workload.")
    ] = None,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show running trials, held locks, what waits for approval, production, the last decisions.

    \b
    compilegate status
    compilegate status bert-docs --json
    """
    cloud = open_cloud(session(ctx).doors, local=local, stage=project.stage_name(stage))
    running = _running(cloud, workload)
    names = [workload] if workload else cloud.overview.workloads()
    document = {
        "stage": cloud.services.settings.stage,
        "drained": _drained(cloud),
        "running": running,
        "locks": _locks(cloud, workload),
        "approvals": waiting(cloud, names),
        "production": production(cloud, names, last=LAST),
        "trials": _trials(cloud, names, [item["execution"] for item in running]),
    }
    if as_json:
        emit_json(document)
    else:
        _show(document)


def _drained(cloud: Cloud) -> dict[str, Any] | None:
    """Since when and by whom nothing may start, None where work may."""
    mark = drain_mark(cloud.services)
    return {"at": mark.at, "by": mark.by} if mark is not None and mark.drained else None


def _running(cloud: Cloud, workload: str | None) -> list[dict[str, Any]]:
    return [
        {
            "execution": state.name, "arn": state.arn, "started_at": state.started_at,
            "carried": _carried(state.name, cloud),
        }
        for state in cloud.executions.running()
        if workload is None or state.name.rpartition("-")[0] == workload
    ]  # fmt: skip


def _carried(execution: str, cloud: Cloud) -> dict[str, Any] | None:
    """The runs that a trial waits for production to make, None where it does not."""
    workload, _, trial = execution.rpartition("-")
    for found in waiting_rounds(workload, cloud):
        if found.trial == trial:
            arms = [run.arm for run in found.runs]
            return {"round": found.round, "arms": arms, "until": found.until}
    return None


def _locks(cloud: Cloud, workload: str | None) -> list[dict[str, Any]]:
    return [
        {"workload": lock.workload, "owner": lock.owner, "expires_at": lock.expires_at}
        for lock in cloud.overview.locks()
        if workload in (None, lock.workload)
    ]


def _trials(cloud: Cloud, names: Collection[str], running: Collection[str]) -> list[dict[str, Any]]:
    """The last trials of each workload that ended, newest first over all of them."""
    found: list[dict[str, Any]] = []
    for name in names:
        ended = [
            {"workload": name, **entry}
            for entry in cloud.services.ledger.entries(name)
            if entry.get("kind") in ("decision", "failed")
        ]
        last = sorted(ended, key=lambda entry: entry["at"], reverse=True)[:LAST]
        # The newest only: each look is a call.
        if last and _has_no_report(last[0], cloud, running):
            command = report_command(name, str(last[0]["trial"]), local=cloud.is_local)
            last[0]["report_missing"] = command
        found += last
    return sorted(found, key=lambda entry: entry["at"], reverse=True)


def _has_no_report(entry: Mapping[str, Any], cloud: Cloud, running: Collection[str]) -> bool:
    """Whether a decided trial has ended without its report; one that runs may still write it."""
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
        say(f"Drained since {since} by {by}; start again with: compilegate drain --undo")
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
                f"{lock['workload']} is locked by {holder}, which is not running; the lock ends "
                f"{minute(lock['expires_at'])}."
            )
    show_waiting(document["approvals"])
    show_production(document["production"])
    trials = document["trials"]
    say("Last trials:" if trials else "No trial has ended yet.")
    for entry in trials:
        name = f"{minute(entry['at'])}  {entry['workload']}-{entry['trial']}"
        say_verdict(name, str(entry.get("verdict") or "failed"), indent=2)
        # What decided comes first; the other gate's reason after it.
        reasons = entry.get("reasons") or [entry.get("reason") or "no reason was recorded"]
        for why in reasons[:2]:
            say(str(why), indent=4)
        if entry.get("report_missing"):
            say("The decision stands, its report is missing. To write it again:", indent=4)
            say_line(f"      {entry['report_missing']}")
