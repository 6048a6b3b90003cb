"""The message about a decision, whichever state machine has made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.notification import Notification, command_at, subject_line
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.utc import minute

# Verdicts that are a kind of their own; every other one ends a trial.
OWN_KINDS = ("revert", "permanent")


def decision_notification(
    decision: Mapping[str, Any],
    *,
    stage: str,
    workload: str,
    subject: str,
    text: str,
    owner: str | None = None,
    report: str | None = None,
    act: str | None = None,
    flag_enabled: bool | None = None,
    flag_state: str | None = None,
    kind: str | None = None,
) -> Notification:
    """The decision (docs/contracts.md) in figures beside its text.

    ``flag_enabled`` and ``flag_state`` are the flag after it, None unknown. ``kind`` defaults to
    the verdict's.
    """
    verdict = decision.get("verdict")
    flag = decision.get("flag") or {}
    return Notification(
        kind=kind or (verdict if verdict in OWN_KINDS else "decision"),
        stage=stage,
        subject=subject,
        text=text,
        workload=workload,
        owner=owner,
        verdict=verdict,
        decision_id=decision.get("decision_id"),
        flag={
            "name": flag.get("name"),
            "action": flag.get("action"),
            "enabled": flag_enabled,
            "state": flag_state,
        },
        figures={
            "candidate": decision.get("candidate"),
            "reasons": [reason["code"] for reason in decision.get("reasons") or ()],
            **{name: decision.get(name) for name in ("speedup", "quality", "saving")},
        },
        report=report,
        act=act,
    )


def approval_needed(
    decision: Mapping[str, Any],
    request: ApprovalRequested,
    *,
    workload: str,
    trial: str,
    owner: str | None,
    stage: str,
) -> Notification:
    """The request with its reasons and the commands that answer it."""
    approve, reject = (
        command_at(f'compilegate flag {word} {workload} --reason "..."', stage)
        for word in ("approve", "reject")
    )
    lines = [
        f"{workload}: trial {trial} proved {decision['candidate']}. The flag is turned on once "
        "it is approved.",
        "",
        *(f"- {reason['message']}" for reason in decision["reasons"]),
        "",
        f"Approve: {approve}",
        f"Reject:  {reject}",
        "",
        f"Without an answer by {minute(request.until)} the flag stays as it is.",
    ]
    return decision_notification(
        decision,
        stage=stage,
        workload=workload,
        subject=subject_line(stage, f"{workload}: waits for your approval"),
        text="\n".join(lines) + "\n",
        owner=owner,
        act=approve,
        kind="approval",
    )
