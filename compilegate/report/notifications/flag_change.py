"""The message when somebody has changed a flag by hand."""

from __future__ import annotations

from compilegate.domain.notification import Notification, command_at
from compilegate.domain.records.flags import HUMAN, FlagVersion


def flag_changed(
    workload: str, version: FlagVersion, *, owner: str | None, stage: str
) -> Notification:
    """The change as the ledger has it, and the command that shows every change."""
    flag = version.flag
    who = version.by.removeprefix(HUMAN)
    what = (
        f"turned the compiler on ({flag.candidate})" if flag.enabled else "turned the compiler off"
    )
    act = command_at(f"compilegate flag history {workload}", stage)
    return Notification(
        kind="changed",
        stage=stage,
        subject=f"[compilegate {stage}] {workload}: {who} {what}: {version.reason}",
        text=f"{workload}: {who} {what}: {version.reason}\n\nEvery change: {act}\n",
        workload=workload,
        owner=owner,
        decision_id=version.decision_id,
        flag={"name": version.parameter, "enabled": flag.enabled, "state": flag.state},
        figures={"by": version.by, "version": version.version, "candidate": flag.candidate},
        act=act,
    )
