"""Asks a person before a promotion takes effect, and waits for the answer.

Three steps of the state machine: ask, wait, close. Each may be repeated. What counts is the
answer in the ledger; the token only wakes whoever waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.approval import (
    ANSWER,
    ASKED,
    NOBODY,
    STOPPED,
    TOKEN,
    WAIT_SECONDS,
    Approval,
    approvals,
)
from compilegate.domain.decision import FlagAction
from compilegate.domain.planning.rounds import LEASE_SECONDS
from compilegate.domain.workload.model import REQUIRED
from compilegate.ports import Services
from compilegate.usecases.approval_notice import approval_notice
from compilegate.usecases.change_flag import latest_flag
from compilegate.usecases.trial import Trial, load_spec

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
    entry = {
        "kind": ASKED,
        "at": now,
        "until": now + WAIT_SECONDS,
        "trial": trial.trial,
        "execution": event["execution"],
        "decision_id": decision["decision_id"],
        "decision_key": event["decision_key"],
        "candidate": decision["candidate"],
    }
    asked = services.ledger.put_once(trial.workload, ledger_keys.approval_entry(trial.trial), entry)
    return approval_notice(decision, asked, trial, services).to_answer()


def await_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Keep the token that wakes the state machine; wake it at once where the answer is there."""
    trial, token = Trial.from_event(event), str(event["token"])
    found = _with_token(trial, token, services)
    if found.answer is not None:
        wake(found, services)
    return {"answered": found.answer is not None}


def close_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """What was answered; silence is written down as a no."""
    trial = Trial.from_event(event)
    answer = answer_once(trial, NOBODY, UNANSWERED, approved=False, services=services)
    return {"approved": answer["approved"], "by": answer["by"], "reason": answer["reason"]}


def abandon_approval(trial: Trial, *, services: Services) -> None:
    """The trial has ended without waiting on: an open question is answered with no."""
    found = approval_of(trial, services)
    if found is not None and found.answer is None:
        reason = "the trial was stopped while it waited"
        answer_once(trial, STOPPED, reason, approved=False, services=services)


def approval_of(trial: Trial, services: Services) -> Approval | None:
    """The question of one trial, None where nobody was asked."""
    entries = services.ledger.entries(trial.workload, ledger_keys.approval_entry(trial.trial))
    return next(iter(approvals(entries)), None)


def answer_once(
    trial: Trial, by: str, reason: str, *, approved: bool, services: Services
) -> Mapping[str, Any]:
    """The answer that stands: this one, or the one that was given before."""
    # Whoever approves knows what has been said until then.
    _, seen = latest_flag(trial.workload, services)
    entry = {
        "kind": ANSWER, "at": services.clock.now(), "trial": trial.trial, "by": by,
        "approved": approved, "reason": reason, "flag_version": seen,
    }  # fmt: skip
    key = ledger_keys.approval_answer_entry(trial.trial)
    return services.ledger.put_once(trial.workload, key, entry)


def wake(found: Approval, services: Services) -> bool:
    """Tell whoever waits, the newest first; returns whether anybody did."""
    answer = found.answer or {}
    output = {key: answer.get(key) for key in ("approved", "by", "reason")}
    waited = [services.tokens.send_success(token, output) for token in reversed(found.tokens)]
    return any(waited)


def _with_token(trial: Trial, token: str, services: Services) -> Approval:
    """The question as it stands, this wait's token on it; a step that is repeated waits anew."""
    while True:
        found = approval_of(trial, services)
        if found is None:
            raise LookupError(f"nobody was asked about trial {trial.trial} of {trial.workload}")
        if token in found.tokens:
            return found
        number = len(found.tokens)
        entry = {
            "kind": TOKEN, "at": services.clock.now(), "trial": trial.trial, "number": number,
            "token": token,
        }  # fmt: skip
        key = ledger_keys.approval_token_entry(trial.trial, number)
        services.ledger.put_once(trial.workload, key, entry)
