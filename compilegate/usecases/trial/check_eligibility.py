"""Decides, before any spend, whether a compiler could apply and pay at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.eligibility import EligibilityVerdict
from compilegate.domain.eligibility import check_eligibility as check
from compilegate.domain.trial.refusals import ineligible
from compilegate.ports import Services
from compilegate.usecases.planning import past_overheads
from compilegate.usecases.records import Trial, load_spec, save_decision, save_record
from compilegate.usecases.registered import facts_for_workload


def check_eligibility(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the eligibility; where nothing is eligible, record that as the decision."""
    trial = Trial.from_event(event)
    workload = load_spec(services.store, trial).workload
    past = services.ledger.history(trial.workload)
    eligibility = check(
        workload,
        facts_for_workload(workload, services.settings),
        region=services.settings.region,
        measured=past_overheads(trial.workload, past, services.store),
    )
    save_record(services.store, trial, "eligibility", eligibility.to_dict())
    decision_key = None
    if eligibility.verdict is EligibilityVerdict.INELIGIBLE:
        decision = ineligible(eligibility, workload=trial.workload, trial=trial.trial)
        decision_key = save_decision(services.store, trial, decision, stage=services.settings.stage)
    return {"verdict": eligibility.verdict, "decision_key": decision_key}
