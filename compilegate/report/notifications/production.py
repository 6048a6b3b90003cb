"""The messages of a production run: it failed, or it waits for capacity."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.claims import Notification, command_at, run_reason, subject_line
from compilegate.domain.errors import shorten
from compilegate.domain.production.recorded_run import NOT_RUN
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.runs import CapacityWait, ProductionRun
from compilegate.domain.workload.model import Workload


def attempt_message(
    record: ProductionRun | CapacityWait, workload: Workload, *, stage: str
) -> Notification:
    """The message to the owner about an attempt."""
    if isinstance(record, ProductionRun):
        return run_failed(record, workload.name, owner=workload.owner, stage=stage)
    return run_waits(record, workload.name, owner=workload.owner, stage=stage)


def run_failed(run: ProductionRun, workload: str, *, owner: str | None, stage: str) -> Notification:
    """There is no new model."""
    what = "was not run" if run.status == NOT_RUN else "failed"
    text = (
        f"Production run {run.run} of {workload} {what}, so there is no new model.\n\narm: "
        f"{run.arm} ({run_reason(run.why)})\njob: {run.job}\nreason: "
        f"{shorten(run.reason or 'not recorded')}\n\nThe schedule continues. To rerun it now: "
        f"{command_at(f'compilegate train {workload}', stage)}\n"
    )
    about = f"{workload}: production run {what}"
    return _message("failed", about, text, run, workload=workload, owner=owner, stage=stage)


def run_waits(wait: CapacityWait, workload: str, *, owner: str | None, stage: str) -> Notification:
    """The run pauses for the first time."""
    text = (
        f"Production run {wait.run} of {workload} waits for machines.\n\n"
        f"arm: {wait.arm}\nreason: {shorten(str(wait.reason))}\n\n"
        f"It tries again in {int(wait.wait_seconds)} seconds, then at longer intervals. The next "
        "message follows only if it gives up.\n"
    )
    about = f"{workload}: production waits for machines"
    return _message("waiting", about, text, wait, workload=workload, owner=owner, stage=stage)


def _message(
    kind: str, about: str, text: str, run: ProductionRun | CapacityWait, *, workload: str,
    owner: str | None, stage: str,
) -> Notification:  # fmt: skip
    return Notification(
        kind=kind,
        stage=stage,
        subject=subject_line(stage, about),
        text=text,
        workload=workload,
        owner=owner,
        figures={"run": run.run, "job": run.job, "arm": run.arm},
        act=command_at(f"compilegate status {workload}", stage),
    )


def flag_changed(
    workload: str, version: FlagVersion, *, owner: str | None, stage: str
) -> Notification:
    """The recorded change, and the command that shows every change."""
    flag = version.flag
    who = version.by.removeprefix(HUMAN)
    what = (
        f"turned the compiler on ({flag.candidate})" if flag.enabled else "turned the compiler off"
    )
    act = command_at(f"compilegate flag history {workload}", stage)
    return Notification(
        kind="changed",
        stage=stage,
        subject=subject_line(stage, f"{workload}: {who} {what}: {version.reason}"),
        text=f"{workload}: {who} {what}: {shorten(version.reason)}\n\nEvery change: {act}\n",
        workload=workload,
        owner=owner,
        decision_id=version.decision_id,
        flag={"name": version.parameter, "enabled": flag.enabled, "state": flag.state},
        figures={"by": version.by, "version": version.version, "candidate": flag.candidate},
        act=act,
    )


def swept(
    workload: str,
    *,
    stopped_jobs: Sequence[str],
    released_leases_of: Sequence[str],
    owner: str | None,
    stage: str,
) -> Notification:
    """What was stopped and released, and where to look for the cause."""
    parts = []
    if stopped_jobs:
        names = ", ".join(stopped_jobs)
        parts.append(f"Stopped training jobs that no execution waited for: {names}.")
    if released_leases_of:
        parts.append("Released the workload's lock, so that it can be evaluated again.")
    parts.append(
        "Their executions ended without cleaning up. For the cause, see the messages of the "
        "dead-letter queue, or the log of abort-trial or record-run."
    )
    return Notification(
        kind="failed",
        stage=stage,
        subject=subject_line(stage, f"{workload}: the daily sweep cleaned up"),
        text="\n".join(parts),
        workload=workload,
        owner=owner,
        figures={
            "stopped_jobs": list(stopped_jobs),
            "released_leases_of": list(released_leases_of),
        },
        act=command_at("compilegate status", stage),
    )
