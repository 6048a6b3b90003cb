"""The messages of a production run: it failed, or it waits for capacity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compilegate.domain.claims import Notification, command_at, run_reason, subject_line
from compilegate.domain.production.recorded_run import NOT_RUN
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.production import CapacityWait, ProductionRun
from compilegate.report import wording

say = partial(wording.say, "messages")


def attempt_message(
    record: ProductionRun | CapacityWait, workload: str, *, owner: str | None, stage: str
) -> Notification:
    """An attempt left no new model, or it pauses for the first time."""
    values = {"run": record.run, "workload": workload, "arm": record.arm}
    if isinstance(record, ProductionRun):
        kind, what = "failed", "was not run" if record.status == NOT_RUN else "failed"
        about = f"production run {what}"
        text = say(
            "run_failed", **values, what=what, why=run_reason(record.why), job=record.job,
            reason=record.reason or "not recorded",
            command=command_at(f"compilegate train {workload}", stage),
        )  # fmt: skip
    else:
        kind, about = "waiting", "production waits for machines"
        seconds = int(record.wait_seconds)
        text = say("run_waits", **values, reason=str(record.reason), seconds=seconds)
    return Notification(
        kind=kind,
        stage=stage,
        subject=subject_line(stage, f"{workload}: {about}"),
        text=text,
        workload=workload,
        owner=owner,
        figures={"run": record.run, "job": record.job, "arm": record.arm},
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
    released_locks_of: Sequence[str],
    owner: str | None,
    stage: str,
) -> Notification:
    """What was stopped and released, and where to look for the cause."""
    text = say("swept", jobs=", ".join(stopped_jobs), released=bool(released_locks_of))
    return Notification(
        kind="failed",
        stage=stage,
        subject=subject_line(stage, f"{workload}: the daily sweep cleaned up"),
        text=text,
        workload=workload,
        owner=owner,
        figures={
            "stopped_jobs": list(stopped_jobs),
            "released_locks_of": list(released_locks_of),
        },
        act=command_at("compilegate status", stage),
    )
