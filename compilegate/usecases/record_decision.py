"""Writes the decision into the ledger, once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import NotFoundError
from compilegate.ports import Services
from compilegate.usecases.approval import needs_approval
from compilegate.usecases.trial import Trial, load_record


def record_decision(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Append the decision to the workload's history; repeating it changes nothing."""
    trial = Trial.from_event(event)
    decision = json.loads(services.store.get(event["decision_key"]))
    entry = {
        "kind": "decision",
        "at": services.clock.now(),
        "trial": trial.trial,
        "decision_id": decision["decision_id"],
        "decision_key": event["decision_key"],
        "verdict": decision["verdict"],
        "candidate": decision["candidate"],
        "judge_version": decision["judge_version"],
        "spent_usd": _spent_usd(trial, services),
        "reasons": [reason["message"] for reason in decision["reasons"]],
    }
    services.ledger.put_once(trial.workload, f"trial#{trial.trial}#decision", entry)
    return {
        "decision_id": decision["decision_id"],
        "verdict": decision["verdict"],
        "flag_action": decision["flag"]["action"],
        "approval_needed": needs_approval(trial, decision["flag"]["action"], services),
    }


def _spent_usd(trial: Trial, services: Services) -> float | None:
    """What the trial's jobs have cost, None for a trial that started none."""
    try:
        spent: float = load_record(services.store, trial, "evidence")["plan"]["spent_usd"]
    except (NotFoundError, KeyError):
        return None
    return spent
