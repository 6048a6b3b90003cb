"""Asks a person before a promotion takes effect, and waits for the answer.

Three steps of the state machine: ask, wait, close. Each may be repeated. What counts is the
answer in the ledger; the token only wakes whoever waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.approval import NOBODY, STOPPED, WAIT_SECONDS
from compilegate.domain.decision import FlagAction
from compilegate.domain.planning.rounds import LEASE_SECONDS
from compilegate.domain.production.history import Approval, history
from compilegate.domain.records.trials import ApprovalAnswer, ApprovalRequested, ApprovalToken
from compilegate.domain.workload.model import REQUIRED
from compilegate.ports import Services
from compilegate.report.notifications.approval import approval_needed
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.owners import owner_of
from compilegate.usecases.trial.documents import Trial, load_spec

UNANSWERED = f"nobody answered within {WAIT_SECONDS // 86400} days"


def needs_approval(trial: Trial, action: str, services: Services) -> bool:
    """Whether a person has to agree before the flag does this."""
    if action != FlagAction.ENABLE:
        return False
    return load_spec(services.store, trial).workload.policy.approval == REQUIRED


def ask_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Write the question down and answer with the message that puts it to people."""
    trial, now = Trial.from_event(event), services.clock.now()
    decision = json.loads(services.store.get(event["decision_key"]))
    # A month may pass until the next step: the lease has to outlive it.
    services.locks.acquire(
        trial.workload,
        str(event["execution"]),
        now=now,
        expires_at=now + WAIT_SECONDS + LEASE_SECONDS,
    )
    request = ApprovalRequested(
        at=now,
        until=now + WAIT_SECONDS,
        trial=trial.trial,
        execution=str(event["execution"]),
        decision_id=decision["decision_id"],
        decision_key=str(event["decision_key"]),
        candidate=decision["candidate"],
    )
    entry = services.ledger.put_once(trial.workload, request.key, request.to_entry())
    recorded = ApprovalRequested.from_entry(entry)
    return approval_needed(
        decision,
        recorded,
        workload=trial.workload,
        trial=trial.trial,
        owner=owner_of(trial, services),
        stage=services.settings.stage,
    ).to_answer()


def await_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Keep the token that wakes the state machine; wake it at once where the answer is there."""
    trial, token = Trial.from_event(event), str(event["token"])
    approval = _with_token(trial, token, services)
    if approval.answer is not None:
        wake(approval, services)
    return {"answered": approval.answer is not None}


def close_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """What was answered; silence is written down as a no."""
    trial = Trial.from_event(event)
    answer = answer_once(trial, NOBODY, UNANSWERED, approved=False, services=services)
    return {"approved": answer.approved, "by": answer.by, "reason": answer.reason}


def abandon_approval(trial: Trial, *, services: Services) -> None:
    """The trial has ended without waiting on: an open question is answered with no."""
    approval = approval_of(trial, services)
    if approval is not None and approval.answer is None:
        reason = "the trial was stopped while it waited"
        answer_once(trial, STOPPED, reason, approved=False, services=services)


def approval_of(trial: Trial, services: Services) -> Approval | None:
    """The question of one trial, None where nobody was asked."""
    entries = services.ledger.entries(trial.workload, ledger_keys.approval_entry(trial.trial))
    return history(entries).approval_of(trial.trial)


def answer_once(
    trial: Trial, by: str, reason: str, *, approved: bool, services: Services
) -> ApprovalAnswer:
    """The answer that stands: this one, or the one that was given before."""
    # Whoever approves knows what has been said until then.
    _, seen = latest_flag(trial.workload, services)
    now = services.clock.now()
    answer = ApprovalAnswer(now, trial.trial, by, approved, reason, flag_version=seen)
    entry = services.ledger.put_once(trial.workload, answer.key, answer.to_entry())
    return ApprovalAnswer.from_entry(entry)


def wake(approval: Approval, services: Services) -> bool:
    """Tell whoever waits, the newest first; returns whether anybody did."""
    output = {key: getattr(approval.answer, key, None) for key in ("approved", "by", "reason")}
    waited = [services.tokens.send_success(token, output) for token in reversed(approval.tokens)]
    return any(waited)


def _with_token(trial: Trial, token: str, services: Services) -> Approval:
    """The question as it stands, this wait's token on it; a step that is repeated waits anew."""
    while True:
        approval = approval_of(trial, services)
        if approval is None:
            raise LookupError(f"nobody was asked about trial {trial.trial} of {trial.workload}")
        if token in approval.tokens:
            return approval
        number = len(approval.tokens)
        waiting = ApprovalToken(services.clock.now(), trial.trial, number, token)
        services.ledger.put_once(trial.workload, waiting.key, waiting.to_entry())
