"""Changes the workload's flag as a trial's decision says; repeating it is safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, FlagAction
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import EVALUATE, FlagChange
from compilegate.domain.planning.arms import promoted
from compilegate.domain.records.trials import ApprovalAnswer, FlagOutcome, TrialStarted
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.ports import Services
from compilegate.usecases.flag.approval import approval_of, needs_approval
from compilegate.usecases.flag.change_flag import Changed, change_flag, latest_flag
from compilegate.usecases.records import Trial, load_decision, load_plan, save_record


@dataclass(frozen=True)
class _Facts:
    """What the change follows from; ``plan`` where the decision promotes a candidate."""

    trial: Trial
    decision_key: str
    decision: Decision
    approved: bool
    answer: ApprovalAnswer | None
    started: TrialStarted | None
    plan: RecordedPlan | None


def apply_flag(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Enable, disable or keep the flag; an unchanged flag is not written.

    Where the workload asks for approval, only an approval in the ledger promotes. The outcome is
    kept beside the decision. Raises InvalidEvidenceError for a promotion without a candidate.
    """
    facts = _read(event, services)
    return _write(facts, _change(facts), services)


def _read(event: Mapping[str, Any], services: Services) -> _Facts:
    trial, key = Trial.from_event(event), str(event["decision_key"])
    decision, approval = load_decision(services.store, key), approval_of(trial, services.ledger)
    promotes = decision.flag_action is FlagAction.ENABLE and decision.candidate is not None
    entry = TrialStarted.key_of(trial=trial.trial)
    started = services.ledger.history(trial.workload, entry).started
    return _Facts(
        trial=trial,
        decision_key=key,
        decision=decision,
        approved=(approval is not None and approval.approved)
        or not needs_approval(trial, decision.flag_action, services.store),
        answer=None if approval is None else approval.answer,
        started=started[0] if started else None,
        plan=load_plan(services.store, trial) if promotes else None,
    )


def _change(facts: _Facts) -> FlagChange | None:
    """The change that the decision asks for; None where the flag stays as it is."""
    trial, decision, answer = facts.trial, facts.decision, facts.answer
    if decision.flag_action is FlagAction.KEEP or not facts.approved:
        return None
    decided_at, seen_version = _seen(facts)
    return FlagChange(
        change_id=f"trial#{trial.trial}#flag",
        by=EVALUATE,
        action=str(decision.flag_action),
        flag=_flag(decision, facts.plan),
        reason="; ".join(decision.messages),
        decided_at=decided_at,
        seen_version=seen_version,
        decision_id=decision.decision_id,
        details={
            "trial": trial.trial,
            "decision_key": facts.decision_key,
            "evidence_key": trial.record_key("evidence"),
            "approved_by": None if answer is None else answer.by,
        },
    )


def _flag(decision: Decision, plan: RecordedPlan | None) -> Flag:
    if decision.flag_action is FlagAction.DISABLE:
        return Flag(enabled=False, state="off", decision_id=decision.decision_id)
    if plan is None or decision.candidate is None:
        raise InvalidEvidenceError(
            f"decision {decision.decision_id} enables the flag and names no candidate"
        )
    arm = plan.arm(decision.candidate)
    return promoted(arm, plan.baseline, decision_id=decision.decision_id)


def _seen(facts: _Facts) -> tuple[int, int | None]:
    """The time and the flag's version up to which the change accounts for manual changes.

    Those of the approval, else of the trial's start. A trial that never recorded its start
    overrules none of them.
    """
    since = facts.answer or facts.started
    return (0, None) if since is None else (since.at, since.flag_version)


def _write(facts: _Facts, change: FlagChange | None, services: Services) -> dict[str, Any]:
    workload = facts.trial.workload
    if change is None:
        flag, version = latest_flag(workload, services)
        made = Changed(changed=False, flag=flag, version=version)
    else:
        made = change_flag(workload, change, services=services)
    outcome = FlagOutcome(
        changed=made.changed,
        enabled=made.flag.enabled,
        state=made.flag.state,
        approved=facts.approved,
        overrode=made.overrode,
        held_by=made.held_by,
        approval=None if facts.answer is None else facts.answer.as_approval,
    )
    document = write(outcome)
    save_record(services.store, facts.trial, "flag", document)
    return {key: document[key] for key in ("changed", "enabled", "approval")}
