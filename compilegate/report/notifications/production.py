"""The messages of a production run: it failed, or it waits for capacity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compilegate.domain.claims import Notification, command_at, run_reason, subject_line
from compilegate.domain.production.recorded_run import NOT_RUN
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.production import CapacityWait, ProductionRun
from compilegate.domain.workload.model import Workload
from compilegate.report import wording

say = partial(wording.say, "messages")


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
    text = say(
        "run_failed", run=run.run, workload=workload, what=what, arm=run.arm,
        why=run_reason(run.why), job=run.job, reason=run.reason or "not recorded",
        again=command_at(f"compilegate train {workload}", stage),
    )  # fmt: skip
    about = f"{workload}: production run {what}"
    return _message("failed", about, text, run, workload=workload, owner=owner, stage=stage)


def run_waits(wait: CapacityWait, workload: str, *, owner: str | None, stage: str) -> Notification:
    """The run pauses for the first time."""
    text = say(
        "run_waits", run=wait.run, workload=workload, arm=wait.arm, reason=str(wait.reason),
        seconds=int(wait.wait_seconds),
    )  # fmt: skip
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
    what = say(
        "turned_on" if flag.enabled else "turned_off", workload=workload, who=who,
        candidate=flag.candidate,
    )  # fmt: skip
    act = command_at(f"compilegate flag history {workload}", stage)
    return Notification(
        kind="changed",
        stage=stage,
        subject=subject_line(stage, f"{what}: {version.reason}"),
        text=say("flag_changed", what=what, reason=version.reason, act=act),
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
    text = say("swept", jobs=", ".join(stopped_jobs), released=bool(released_leases_of))
    return Notification(
        kind="failed",
        stage=stage,
        subject=subject_line(stage, f"{workload}: the daily sweep cleaned up"),
        text=text,
        workload=workload,
        owner=owner,
        figures={
            "stopped_jobs": list(stopped_jobs),
            "released_leases_of": list(released_leases_of),
        },
        act=command_at("compilegate status", stage),
    )
