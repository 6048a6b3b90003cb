"""``compilegate status``: running trials, locks, approvals, production, last decisions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from compilegate.adapters.dynamodb import Lock
from compilegate.cli.common.completion import workload_names
from compilegate.cli.common.output import emit_json, say, say_line, say_verdict
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.cli.status.rows import (
    EndedTrial,
    Ignored,
    PendingApproval,
    ProductionRow,
    RunningTrial,
    StageStatus,
    read_status,
)
from compilegate.domain.formats import clock
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.utc import minute
from compilegate.domain.words import run_reason


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
    stage_status = read_status(invocation.open_records(), workload)
    if invocation.as_json:
        emit_json(stage_status.to_dict())
    else:
        show_status(stage_status)


def show_status(status: StageStatus) -> None:
    """What runs, what is locked, what waits for a person, and what ended last."""
    say(f"Stage {status.stage}", style="bold")
    if status.drained is not None:
        since, by = minute(status.drained.at), status.drained.by
        say(f"Drained since {since} by {by}; to allow work again: compilegate drain --undo")
    _show_running(status.running)
    _show_locks(status.locks, [one.arn for one in status.running])
    _show_approvals(status.approvals)
    _show_production(status.production)
    _show_ignored(status.ignored_jobs)
    _show_trials(status.trials)


def _show_running(trials: Sequence[RunningTrial]) -> None:
    now = time.time()
    say("Running:" if trials else "Nothing is running.")
    for trial in trials:
        say(f"{trial.execution}, for {clock(now - trial.started_at)}", indent=2)
        if trial.carried is not None:
            arms, until = ", ".join(trial.carried.arms), minute(trial.carried.until)
            say(f"waits for production to train {arms}, at most until {until}", indent=4)


def _show_locks(locks: Sequence[Lock], running: Sequence[str]) -> None:
    for lock in locks:
        if lock.owner not in running:
            holder = lock.owner.rpartition(":")[2]
            say(
                f"{lock.workload} is locked by {holder}, which is not running; the lock expires "
                f"{minute(lock.expires_at)}."
            )


def _show_approvals(approvals: Sequence[PendingApproval]) -> None:
    if approvals:
        say("Waiting for approval:")
    for one in approvals:
        since, until = minute(one.asked_at), minute(one.until)
        say(f"{one.workload}-{one.trial}: {one.candidate}, since {since}, until {until}", indent=2)
        say_line(f"    {one.approve}")
        say_line(f"    {one.reject}")


def _show_production(runs: Sequence[ProductionRow]) -> None:
    if runs:
        say("Last production runs:")
    for run in runs:
        what = f"{run.arm}, {run.status.lower()}"
        say(f"{minute(run.at)}  {run.workload}-{run.run}: {what}", indent=2)
        say(run.reason or run_reason(run.why), indent=4)


def _show_ignored(jobs: Sequence[Ignored]) -> None:
    if jobs:
        say("Jobs that carry a workload's tags and did not count:")
    for one in jobs:
        what = f"{one.workload}: {one.job.job} ran as {one.job.role} ({one.job.code})"
        say(f"{minute(one.job.at)}  {what}", indent=2)
    for fix in dict.fromkeys(one.fix for one in jobs):
        say(fix, indent=4)


def _show_trials(trials: Sequence[EndedTrial]) -> None:
    say("Last trials:" if trials else "No trial has ended yet.")
    for one in trials:
        decided = one.record if isinstance(one.record, TrialDecided) else None
        name = f"{minute(one.record.at)}  {one.workload}-{one.record.trial}"
        say_verdict(name, decided.verdict if decided and decided.verdict else "failed", indent=2)
        # The deciding reason comes first, the other gate's after it.
        for why in _reasons(one)[:2]:
            say(why, indent=4)
        if one.report_command:
            say("The decision stands, its report is missing. To write it again:", indent=4)
            say_line(f"      {one.report_command}")


def _reasons(trial: EndedTrial) -> Sequence[str]:
    record = trial.record
    reasons = record.reasons if isinstance(record, TrialDecided) else (record.reason,)
    return [reason for reason in reasons if reason] or ["no reason was recorded"]
