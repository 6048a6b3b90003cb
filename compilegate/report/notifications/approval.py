"""The message when a promotion waits for approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.notification import Notification, command_at
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.utc import minute
from compilegate.report.notifications.decision import DecisionText, decision_notification


def approval_needed(
    decision: Mapping[str, Any],
    asked: ApprovalRequested,
    *,
    workload: str,
    trial: str,
    owner: str | None,
    stage: str,
) -> Notification:
    """The question with its reasons and the commands that answer it."""
    approve, reject = (
        command_at(f'compilegate flag {word} {workload} --reason "..."', stage)
        for word in ("approve", "reject")
    )
    lines = [
        f"{workload}: trial {trial} proved {decision['candidate']}. The flag is turned on once "
        "somebody approves it.",
        "",
        *(f"- {reason['message']}" for reason in decision["reasons"]),
        "",
        f"Approve: {approve}",
        f"Reject:  {reject}",
        "",
        f"Without an answer by {minute(asked.until)} the flag stays as it is.",
    ]
    message = DecisionText(
        subject=f"[compilegate {stage}] {workload}: waits for your approval",
        text="\n".join(lines) + "\n",
        owner=owner,
        act=approve,
        kind="approval",
    )
    return decision_notification(decision, message, workload=workload, stage=stage)
