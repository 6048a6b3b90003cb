"""The message about a decision, whichever state machine has made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.notification import Notification, command_at
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.utc import minute

# Verdicts that are a kind of their own; every other one ends a trial.
OWN_KINDS = ("revert", "permanent")


@dataclass(frozen=True)
class DecisionText:
    """Subject and text, and what became of the flag; None is unknown."""

    subject: str
    text: str
    owner: str | None = None
    report: str | None = None
    act: str | None = None
    flag_enabled: bool | None = None
    flag_state: str | None = None
    kind: str | None = None


def decision_notification(
    decision: Mapping[str, Any], message: DecisionText, *, workload: str, stage: str
) -> Notification:
    """The decision (docs/contracts.md) in figures beside its text."""
    verdict = decision.get("verdict")
    flag = decision.get("flag") or {}
    return Notification(
        kind=message.kind or (verdict if verdict in OWN_KINDS else "decision"),
        stage=stage,
        subject=message.subject,
        text=message.text,
        workload=workload,
        owner=message.owner,
        verdict=verdict,
        decision_id=decision.get("decision_id"),
        flag={
            "name": flag.get("name"),
            "action": flag.get("action"),
            "enabled": message.flag_enabled,
            "state": message.flag_state,
        },
        figures={
            "candidate": decision.get("candidate"),
            "reasons": [reason["code"] for reason in decision.get("reasons") or ()],
            **{name: decision.get(name) for name in ("speedup", "quality", "saving")},
        },
        report=message.report,
        act=message.act,
    )


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
