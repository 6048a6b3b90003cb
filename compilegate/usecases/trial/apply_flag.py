"""Writes a decision into the ledger, once, and changes the workload's flag as it says.

Repeating either is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.flag import Flag, Layer
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.judging.evidence_file import read_evidence, recorded_spend
from compilegate.domain.judging.whole_job import measured_spreads
from compilegate.domain.optional import map_optional
from compilegate.domain.planning.arms import promoted
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import FlagOutcome, GivenAnswer, TrialDecided, TrialStarted
from compilegate.domain.spreads import Measured
from compilegate.domain.trial.evidence import saved_bundle
from compilegate.ports import Services
from compilegate.usecases import records
from compilegate.usecases.flag.approval import approval_of, needs_approval
from compilegate.usecases.flag.change_flag import Changed, change_flag, flag_versions, latest_flag

# Digits of a layer's gain in the flag.
SIGNIFICANT = 4


def record_decision(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Append the decision to the workload's history; repeating it changes nothing."""
    trial, key = records.Trial.from_event(event), str(event["decision_key"])
    decision = records.load_decision(services.store, key)
    # A trial without evidence has started no job.
    evidence = records.find_record(services.store, trial, "evidence") or {}
    record = TrialDecided(
        at=services.clock.now(),
        trial=trial.trial,
        decision_id=decision.decision_id,
        decision_key=key,
        verdict=decision.verdict,
        candidate=decision.candidate,
        judge_version=decision.judge_version,
        spent_usd=recorded_spend(evidence) or 0.0,
        reasons=decision.messages,
        spreads=_spreads(trial, decision, evidence, services),
    )
    services.ledger.append(trial.workload, record)
    return {
        "decision_id": decision.decision_id,
        "verdict": decision.verdict,
        "flag_action": str(decision.flag_action),
        "approval_needed": needs_approval(trial, decision, services.store),
    }


def _spreads(
    trial: records.Trial, decision: Decision, evidence: Mapping[str, Any], services: Services
) -> Measured | None:
    """What the trial has shown of spreads, None where its documents are not to be trusted."""
    if decision.verdict is Verdict.INVALID:
        return None
    try:
        machine = records.load_plan(services.store, trial).baseline.instance_type
        read = read_evidence(evidence)
    except (InvalidEvidenceError, NotFoundError):
        return None
    candidate = read.arm(decision.candidate or "")
    return map_optional(candidate, lambda one: measured_spreads(one, read, machine))


def apply_flag(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Enable, disable or keep the flag; an unchanged flag is not written.

    Where the workload asks for approval, only an approval in the ledger promotes. The outcome is
    kept beside the decision. Raises InvalidEvidenceError for a promotion without a candidate.
    """
    trial, key, store = records.Trial.from_event(event), str(event["decision_key"]), services.store
    decision, approval = records.load_decision(store, key), approval_of(trial, services.ledger)
    answer = approval.answer if approval else None
    reply = map_optional(answer, lambda one: GivenAnswer(one.approved, one.by, one.at, one.reason))
    approved = bool(reply and reply.approved) or not needs_approval(trial, decision, store)
    plan, action = records.find_plan(store, trial), decision.flag_action
    stands_on = plan.stands_on if plan else 0
    # A layer that is worse or slower says nothing of what it was tried on.
    if action is FlagAction.KEEP or (stands_on and action is FlagAction.DISABLE) or not approved:
        made = Changed(False, *latest_flag(trial.workload, services))
    else:
        own = TrialStarted.key_of(trial=trial.trial)
        started = services.ledger.history(trial.workload, own).started
        # The change accounts for manual changes up to the approval, else up to the trial's start.
        # A trial that never recorded its start overrules none of them.
        since = answer or next(iter(started), None)
        change = FlagVersion(
            version=0,
            at=0,
            change_id=f"trial#{trial.trial}#flag",
            by=EVALUATE,
            action=str(action),
            value=_decided_flag(decision, trial, services).to_json(),
            reason="; ".join(decision.messages),
            decided_at=since.at if since else 0,
            seen_version=since.flag_version if since else None,
            based_on=stands_on or None,
            decision_id=decision.decision_id,
            details={
                "trial": trial.trial,
                "decision_key": key,
                "evidence_key": trial.record_key("evidence"),
                "approved_by": reply.by if reply else None,
            },
        )
        made = change_flag(trial.workload, change, services=services)
    document = write(
        FlagOutcome(
            changed=made.changed,
            enabled=made.flag.enabled,
            state=made.flag.state,
            approved=approved,
            overrode=made.overrode,
            held_by=made.held_by or made.superseded_by,
            approval=reply,
        )
    )
    records.save_record(store, trial, "flag", document)
    return {key: document[key] for key in ("changed", "enabled", "approval")}


def _decided_flag(decision: Decision, trial: records.Trial, services: Services) -> Flag:
    if decision.flag_action is FlagAction.DISABLE:
        return Flag(enabled=False, state="off", decision_id=decision.decision_id)
    if decision.candidate is None:
        raise InvalidEvidenceError(
            f"decision {decision.decision_id} enables the flag and names no candidate"
        )
    plan = records.load_plan(services.store, trial)
    name, decided = decision.candidate, decision.decision_id
    evidence = records.find_record(services.store, trial, "evidence") or {}
    bundle = saved_bundle(evidence, name, trial.workload)
    flag, gain = promoted(plan.arm(name), plan.baseline, decision_id=decided), decision.layer
    flag = replace(flag, compile_bundle=bundle)
    if not (plan.stands_on and gain and decision.speedup):
        return flag
    below = flag_versions(trial.workload, services)[plan.stands_on - 1].flag
    # What one candidate alone has gained, as this trial has measured it.
    alone = decision.speedup.estimate / gain.estimate
    first = Layer(gain.on, below.decision_id or decided, round(alone, SIGNIFICANT))
    layer = Layer(name, decided, round(gain.estimate, SIGNIFICANT))
    return replace(flag, layers=(*(below.layers or (first,)), layer))
