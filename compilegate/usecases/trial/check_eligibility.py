"""Decides, before any spend, whether a compiler could apply and pay at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.eligibility import Eligibility
from compilegate.domain.eligibility import check_eligibility as check
from compilegate.domain.production.history import history
from compilegate.domain.reasons import Reason, Severity
from compilegate.ports import Services
from compilegate.usecases.registration.load import facts_for_workload
from compilegate.usecases.trial.documents import (
    Trial,
    load_spec,
    save_decision,
    save_record,
)
from compilegate.usecases.trial.past_overheads import past_overheads


def check_eligibility(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the eligibility; where nothing is eligible, record that as the decision."""
    trial = Trial.from_event(event)
    workload = load_spec(services.store, trial).workload
    past = history(services.ledger.entries(trial.workload))
    eligibility = check(
        workload,
        facts_for_workload(workload, services.settings),
        region=services.settings.region,
        measured=past_overheads(trial.workload, past, services.store),
    )
    save_record(services.store, trial, "eligibility", eligibility.to_dict())
    decision_key = None
    if eligibility.verdict == "ineligible":
        decision_key = save_decision(services, trial, _ineligible(eligibility, trial))
    return {"verdict": eligibility.verdict, "decision_key": decision_key}


def _ineligible(eligibility: Eligibility, trial: Trial) -> Decision:
    """The decision by what stands in the way, the workload's own reasons first, each once."""
    reasons = [*eligibility.reasons, *(r for one in eligibility.candidates for r in one.reasons)]
    blocking = [
        Reason(reason.code, reason.message, fix=reason.fix)
        for reason in reasons
        if reason.severity is Severity.BLOCK
    ]
    return Decision(
        workload=trial.workload,
        decision_id=f"{trial.trial}-ineligible",
        judge_version=JUDGE_VERSION,
        stage="eligibility",
        verdict=Verdict.INELIGIBLE,
        candidate=None,
        reasons=tuple(dict.fromkeys(blocking)),
    )
