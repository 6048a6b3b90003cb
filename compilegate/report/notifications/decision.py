"""The message about a decision, whichever state machine has made it."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.claims import Notification, claims_of, command_at, subject_line
from compilegate.domain.codec import write
from compilegate.domain.decision import Decision
from compilegate.domain.errors import shorten
from compilegate.domain.notes import Note, said
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.utc import minute
from compilegate.report import statements
from compilegate.report.statements import shown_reasons

# Verdicts that are a kind of their own; every other one ends a trial.
OWN_KINDS = ("revert", "permanent")


def decision_notification(
    decision: Decision | None,
    *,
    stage: str,
    workload: str,
    subject: str,
    text: str,
    owner: str | None = None,
    report: str | None = None,
    link: str | None = None,
    act: str | None = None,
    flag_enabled: bool | None = None,
    flag_state: str | None = None,
    kind: str | None = None,
    more_links: Sequence[str] = (),
) -> Notification:
    """The decision in figures beside its text; ``decision`` is None for news without one.

    ``flag_enabled`` and ``flag_state`` are the flag after it, None unknown. ``kind`` defaults to
    the verdict's. ``more_links`` are the URLs of ours in the text beside ``link``.
    """
    verdict = decision.verdict if decision else None
    return Notification(
        kind=kind or (verdict if verdict in OWN_KINDS else "decision"),
        stage=stage,
        subject=subject,
        text=text,
        workload=workload,
        owner=owner,
        verdict=verdict,
        decision_id=decision.decision_id if decision else None,
        flag={
            "name": decision.flag.name if decision and decision.flag else None,
            "action": str(decision.flag_action) if decision else None,
            "enabled": flag_enabled,
            "state": flag_state,
        },
        figures={
            "candidate": decision.candidate if decision else None,
            "reasons": list(decision.codes) if decision else [],
            "speedup": write(decision.speedup) if decision else None,
            "quality": write(decision.quality) if decision else None,
            "saving": write(decision.saving) if decision else None,
            "claims": claims_of(decision).to_dict() if decision else None,
        },
        report=report,
        link=link,
        act=act,
        more_links=more_links,
    )


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
        *(f"- {shorten(reason.message)}" for reason in shown_reasons(decision, None)),
        "",
        *statements.key_figures(metric, decision),
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
