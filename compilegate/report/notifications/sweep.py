"""The message when the daily sweep has cleaned up."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.notification import Notification, command_at


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
        subject=f"[compilegate {stage}] {workload}: the daily sweep cleaned up",
        text="\n".join(parts),
        workload=workload,
        owner=owner,
        figures={
            "stopped_jobs": list(stopped_jobs),
            "released_leases_of": list(released_leases_of),
        },
        act=command_at("compilegate status", stage),
    )
