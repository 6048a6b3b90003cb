"""What is decided before anything is spent: whether a compiler could pay at all, and the plan.

The plan fixes the arms, rounds and cost of a trial, or refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.decision import SHADOW, Decision, Verdict
from compilegate.domain.eligibility import EligibilityVerdict
from compilegate.domain.eligibility import check_eligibility as check
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.reasons import Reason
from compilegate.domain.trial.plan import (
    QualityMode,
    TrialContext,
    cooling_down,
    plan_document,
    quality_mode,
)
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.planning import past_overheads, plan_for
from compilegate.usecases.records import Spec, Trial, load_spec, save_decision, save_record, spec_at
from compilegate.usecases.registered import facts_for_workload, load_registration


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
        decision = eligibility.refusal(workload=trial.workload, trial=trial.trial)
        decision_key = save_decision(services.store, trial, decision, stage=services.settings.stage)
    return {"verdict": eligibility.verdict, "decision_key": decision_key}


def plan_trial(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the plan; a refusal is recorded as an inconclusive decision with its reason."""
    trial, store, settings = Trial.from_event(event), services.store, services.settings
    spec, past = load_spec(store, trial), services.ledger.history(trial.workload)
    context = TrialContext(
        trial=trial.trial,
        spec_key=trial.spec_key,
        execution=str(event["execution"]),
        source_key=spec.source_key,
        started_at=services.clock.now(),
        quality_mode=mode_of_trial(spec, past, store),
    )
    days, now = spec.workload.policy.cooldown_days, context.started_at
    plan = cooling_down(past.flags, days, now=now, workload=trial.workload) or plan_for(
        spec.workload,
        settings,
        quotas=services.quotas,
        measured=past_overheads(trial.workload, past, store),
        quality_runs=context.quality_mode.used,
        notes=spec.notes,
    )
    if isinstance(plan, Reason):
        decision = Decision.of_this_judge(
            trial.workload, f"{trial.trial}-refused", "plan", Verdict.INCONCLUSIVE, [plan]
        )
        key = save_decision(store, trial, decision, stage=settings.stage)
        return {
            "verdict": "inconclusive", "plan_key": None, "estimated_usd": None, "decision_key": key,
        }  # fmt: skip
    services.roles.ensure(trial.workload)
    document = plan_document(plan, context, spec.workload.training)
    return {
        "verdict": "continue",
        "plan_key": save_record(store, trial, "plan", document),
        "estimated_usd": round(plan.estimate.usd, 4),
        "decision_key": None,
    }


def mode_of_trial(spec: Spec, past: WorkloadHistory, store: ObjectStore) -> QualityMode:
    """The mode of a trial of ``spec``, by its registration and its workload's history."""
    name = spec.workload.name
    try:
        registration = load_registration(store, name)
        produced = spec_at(store, registration.spec_key)
    except NotFoundError:
        return quality_mode(spec.job, None, None, WorkloadHistory())
    except InvalidInputError as error:
        return QualityMode(spec.workload.policy.quality_runs, SHADOW, str(error))
    return quality_mode(spec.job, registration, produced.job, past)
