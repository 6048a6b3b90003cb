"""Decides, before any spend, whether a compiler could apply and pay at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.eligibility import check_eligibility as check
from compilegate.domain.eligibility import in_one_line
from compilegate.ports import Services
from compilegate.usecases.decide import save_decision
from compilegate.usecases.known_facts import known_facts
from compilegate.usecases.past_overheads import past_overheads
from compilegate.usecases.trial import Trial, load_spec, save_record


def check_eligibility(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the eligibility; where nothing is eligible, record that as the decision."""
    trial = Trial.from_event(event)
    spec = load_spec(services.store, trial)
    eligibility = check(
        spec.workload,
        known_facts(spec.workload, services.settings),
        region=services.settings.region,
        measured=past_overheads(trial.workload, services),
    )
    document = eligibility.to_dict()
    save_record(services.store, trial, "eligibility", document)
    decision_key = None
    if eligibility.verdict == "ineligible":
        decision = Decision(
            workload=trial.workload,
            decision_id=f"{trial.trial}-ineligible",
            judge_version=JUDGE_VERSION,
            stage="eligibility",
            verdict=Verdict.INELIGIBLE,
            candidate=None,
            reasons=_blocking(document),
        )
        decision_key = save_decision(services, trial, decision)
    return {"verdict": eligibility.verdict, "decision_key": decision_key}


def _blocking(document: Mapping[str, Any]) -> tuple[Reason, ...]:
    """What stands in the way, the workload's own reasons first, each said once."""
    sources = [document, *document["candidates"]]
    found = [
        Reason(reason["code"], f"{reason['message']}. Fix: {in_one_line(reason['fix'])}")
        for source in sources
        for reason in source["reasons"]
        if reason["severity"] == "block"
    ]
    return tuple(dict.fromkeys(found))
