"""Fixes the arms, rounds and cost of a trial, or refuses it before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.eligibility import MeasuredOverhead, check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import promoted
from compilegate.domain.judging.identity import ID_LENGTH
from compilegate.domain.planning.arm_plan import CANDIDATE
from compilegate.domain.planning.plan import Plan, Refusal
from compilegate.domain.planning.plan import plan_trial as design
from compilegate.domain.production.cooldown import cooling_down
from compilegate.domain.production.quality_mode import SHADOW
from compilegate.domain.workload.model import Workload
from compilegate.ports import Quotas, Services, Settings
from compilegate.usecases.change_flag import flag_history
from compilegate.usecases.decide import save_decision
from compilegate.usecases.known_facts import known_facts
from compilegate.usecases.past_overheads import past_overheads
from compilegate.usecases.production.quality_mode import mode_of_trial
from compilegate.usecases.request_check import refused_request
from compilegate.usecases.trial import Trial, load_spec, save_record
from compilegate.usecases.trial_limits import limits


def plan_trial(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the plan; a refusal is recorded as an inconclusive decision with its reason."""
    trial = Trial.from_event(event)
    spec = load_spec(services.store, trial)
    measured, mode = past_overheads(trial.workload, services), mode_of_trial(spec, services)
    plan = _cooling_down(spec.workload, services) or plan_for(
        spec.workload,
        services.settings,
        quotas=services.quotas,
        measured=measured,
        quality_runs=mode.used,
    )
    if isinstance(plan, Refusal):
        decision = Decision(
            workload=trial.workload,
            decision_id=f"{trial.trial}-refused",
            judge_version=JUDGE_VERSION,
            stage="plan",
            verdict=Verdict.INCONCLUSIVE,
            candidate=None,
            reasons=(plan.reason,),
        )
        key = save_decision(services, trial, decision)
        return {
            "verdict": "inconclusive", "plan_key": None, "estimated_usd": None, "decision_key": key,
        }  # fmt: skip
    document = plan.to_dict()
    document |= {
        "trial": trial.trial, "spec_key": trial.spec_key, "execution": str(event["execution"]),
        "source_key": spec.source_key, "started_at": services.clock.now(),
        "quality_mode": asdict(mode),
        "limits": limits(document, spec.workload.training, mode.used),
    }  # fmt: skip
    return {
        "verdict": "continue",
        "plan_key": save_record(services.store, trial, "plan", document),
        "estimated_usd": round(plan.estimate.usd, 4),
        "decision_key": None,
    }


def _cooling_down(workload: Workload, services: Services) -> Refusal | None:
    """The refusal of a trial that comes too soon after a revert."""
    history = flag_history(workload.name, services)
    days, now = workload.policy.cooldown_days, services.clock.now()
    reason = cooling_down(history, days, now=now, workload=workload.name)
    return Refusal(reason) if reason else None


def plan_for(
    workload: Workload,
    settings: Settings,
    *,
    quotas: Quotas | None = None,
    measured: Sequence[MeasuredOverhead] = (),
    quality_runs: str = SHADOW,
) -> Plan | Refusal:
    """The plan that a workload gets under a deployment's settings.

    Quotas are the account's where it can be asked, else those that a refresh of facts has read.
    ``measured`` are compile times of the workload's earlier trials. ``quality_runs`` is who makes
    the full runs, the trial itself unless production is known to carry them.
    """
    facts, spot = known_facts(workload, settings), workload.training.spot

    @cache
    def quota(instance_type: str) -> int | None:
        asked = quotas.training_instances(instance_type, spot=spot) if quotas else None
        return facts.quota(instance_type, spot=spot) if asked is None else asked

    eligibility = check_eligibility(workload, facts, region=settings.region, measured=measured)
    plan = design(
        workload, eligibility, facts, region=settings.region, quota=quota, mode=quality_runs
    )
    if isinstance(plan, Refusal):
        return plan
    why = refused_request(workload, plan.arms, settings, steps=plan.speed_steps)
    if why is not None:
        return Refusal(Reason("request_refused", why))
    too_large = _too_large_a_flag(plan)
    return plan if too_large is None else Refusal(Reason("flag_too_large", too_large))


def _too_large_a_flag(plan: Plan) -> str | None:
    """Why a candidate's flag could not be written were it proven; told before it costs."""
    baseline = asdict(plan.arms[0])
    for arm in plan.arms:
        if arm.role != CANDIDATE:
            continue
        flag = promoted(
            asdict(arm), baseline, decision_id="d" * ID_LENGTH, since="2026-01-01T00:00:00Z"
        )
        try:
            flag.to_json()
        except InvalidInputError as error:
            fix = "set fewer or shorter hyperparameters on the candidate, or in its script"
            place = f"candidates ({arm.name})"
            told = f"has changes whose flag {error.problem}"
            return str(InvalidInputError(told, field=place, fix=fix))
    return None
