"""What people are told when a promotion waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.notification import Notification, command_at
from compilegate.domain.utc import minute
from compilegate.ports import Services
from compilegate.usecases.notify_decision import Told, decision_notification, owner_of
from compilegate.usecases.trial import Trial


def approval_notice(
    decision: Mapping[str, Any], asked: Mapping[str, Any], trial: Trial, services: Services
) -> Notification:
    """The question with its reasons and the exact commands that answer it."""
    stage = services.settings.stage
    approve, reject = (
        command_at(f'compilegate flag {word} {trial.workload} --reason "..."', stage)
        for word in ("approve", "reject")
    )
    until = minute(asked["until"])
    lines = [
        f"{trial.workload}: trial {trial.trial} proved {decision['candidate']}. The flag goes on "
        "once somebody approves it.",
        "",
        *(f"- {reason['message']}" for reason in decision["reasons"]),
        "",
        f"Approve: {approve}",
        f"Reject:  {reject}",
        "",
        f"Without an answer by {until} the flag stays as it is.",
    ]
    told = Told(
        subject=f"[compilegate {stage}] {trial.workload}: waits for your approval",
        text="\n".join(lines) + "\n",
        owner=owner_of(trial, services),
        act=approve,
        kind="approval",
    )
    return decision_notification(decision, told, workload=trial.workload, stage=stage)
