"""The message that asks for the approval of a decision."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.claims import (
    Notification,
    claims_of,
    command_at,
    decision_notification,
    subject_line,
)
from compilegate.domain.decision import Decision
from compilegate.domain.notes import Note, said
from compilegate.domain.outside import shorten
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.utc import minute
from compilegate.report import statements


def approval_needed(
    decision: Decision,
    request: ApprovalRequested,
    *,
    workload: str,
    trial: str,
    owner: str | None,
    stage: str,
    notes: Sequence[Note] = (),
) -> Notification:
    """The request with its reasons and the commands that answer it.

    ``notes`` are remarks about the job.
    """
    approve, reject = (
        command_at(f'compilegate flag {word} {workload} --reason "..."', stage)
        for word in ("approve", "reject")
    )
    metric = decision.quality.metric if decision.quality else "quality"
    lines = [
        f"{workload}: trial {trial} proved {decision.candidate}. The flag is turned on once "
        "it is approved.",
        "",
        *(f"- {shorten(reason.message)}" for reason in statements.shown_reasons(decision, None)),
        "",
        *statements.key_figures(metric, decision, claims_of(decision)),
        "",
        *(line for text in said(notes) for line in (text, "")),
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
