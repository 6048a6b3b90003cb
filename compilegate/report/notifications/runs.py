"""The messages of a production run: it failed, or it waits for capacity."""

from __future__ import annotations

from compilegate.domain.notification import Notification
from compilegate.domain.production.recorded_run import NOT_RUN
from compilegate.domain.records.runs import CapacityWait, ProductionRun
from compilegate.domain.words import run_reason


def run_failed(run: ProductionRun, workload: str, *, owner: str | None, stage: str) -> Notification:
    """There is no new model."""
    what = "was not run" if run.status == NOT_RUN else "failed"
    text = (
        f"Production run {run.run} of {workload} {what}, so there is no new model.\n\narm: "
        f"{run.arm} ({run_reason(run.why)})\njob: {run.job}\nreason: "
        f"{run.reason or 'none was given'}\n\nThe schedule continues. To rerun it now: compilegate "
        f"train {workload}\n"
    )
    return Notification(
        kind="failed",
        stage=stage,
        subject=f"[compilegate] {workload}: production run {what}",
        text=text,
        workload=workload,
        owner=owner,
        figures={"run": run.run, "job": run.job, "arm": run.arm},
        act=f"compilegate status {workload}",
    )


def run_waits(wait: CapacityWait, workload: str, *, owner: str | None, stage: str) -> Notification:
    """The run pauses for the first time."""
    text = (
        f"Production run {wait.run} of {workload} waits for machines.\n\n"
        f"arm: {wait.arm}\nreason: {wait.reason}\n\n"
        f"It tries again in {int(wait.wait_seconds)} seconds, then at longer intervals. The next "
        "message follows only if it gives up.\n"
    )
    return Notification(
        kind="waiting",
        stage=stage,
        subject=f"[compilegate] {workload}: production waits for machines",
        text=text,
        workload=workload,
        owner=owner,
        figures={"run": wait.run, "job": wait.job, "arm": wait.arm},
        act=f"compilegate status {workload}",
    )
