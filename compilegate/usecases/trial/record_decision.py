"""Writes the decision into the ledger, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.judging.evidence_file import recorded_spend
from compilegate.domain.records.trials import TrialDecided
from compilegate.ports import Services
from compilegate.usecases.flag.approval import needs_approval
from compilegate.usecases.records import Trial, find_record, load_decision


def record_decision(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Append the decision to the workload's history; repeating it changes nothing."""
    trial, key = Trial.from_event(event), str(event["decision_key"])
    decision = load_decision(services.store, key)
    evidence = find_record(services.store, trial, "evidence")
    record = TrialDecided(
        at=services.clock.now(),
        trial=trial.trial,
        decision_id=decision.decision_id,
        decision_key=key,
        verdict=decision.verdict,
        candidate=decision.candidate,
        judge_version=decision.judge_version,
        # None for a trial that started no job.
        spent_usd=None if evidence is None else recorded_spend(evidence),
        reasons=decision.messages,
    )
    services.ledger.append(trial.workload, record)
    return {
        "decision_id": decision.decision_id,
        "verdict": decision.verdict,
        "flag_action": str(decision.flag_action),
        "approval_needed": needs_approval(trial, decision.flag_action, services.store),
    }
