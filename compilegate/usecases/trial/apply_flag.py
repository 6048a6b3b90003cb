"""Changes the workload's flag as a trial's decision says; repeating it is safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.decision import FlagAction
from compilegate.domain.flag import Flag, promoted
from compilegate.domain.flag_change import EVALUATE, FlagChange
from compilegate.domain.production.history import history
from compilegate.domain.records.decisions import FlagOutcome, RecordedDecision
from compilegate.domain.records.trials import ApprovalAnswer
from compilegate.ports import Services
from compilegate.usecases.flag.approval import approval_of, needs_approval
from compilegate.usecases.flag.change_flag import Changed, change_flag, latest_flag
from compilegate.usecases.trial.documents import Trial, save_record
from compilegate.usecases.trial.recorded import load_decision, load_plan


def apply_flag(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Enable, disable or keep the flag; an unchanged flag is not written.

    Where the workload asks for approval, only an approval in the ledger promotes. What became of
    the flag is kept beside the decision.
    """
    trial, key = Trial.from_event(event), str(event["decision_key"])
    decision = load_decision(services.store, key)
    asked = approval_of(trial, services)
    answer = None if asked is None else asked.answer
    approved = (asked is not None and asked.approved) or not needs_approval(
        trial, decision.flag_action, services
    )
    if decision.flag_action is FlagAction.KEEP or not approved:
        flag, version = latest_flag(trial.workload, services)
        made = Changed(changed=False, flag=flag, version=version)
    else:
        change = _change(trial, decision, key, answer, services)
        made = change_flag(trial.workload, change, services=services)
    outcome = FlagOutcome(
        changed=made.changed,
        enabled=made.flag.enabled,
        state=made.flag.state,
        approved=approved,
        overrode=made.overrode,
        held_by=made.held_by,
        approval=answer,
    ).to_dict()
    save_record(services.store, trial, "flag", outcome)
    return {key: outcome[key] for key in ("changed", "enabled", "approval")}


def _change(
    trial: Trial,
    decision: RecordedDecision,
    decision_key: str,
    answer: ApprovalAnswer | None,
    services: Services,
) -> FlagChange:
    decided_at, seen_version = _known_until(trial, answer, services)
    return FlagChange(
        change_id=f"trial#{trial.trial}#flag",
        by=EVALUATE,
        action=str(decision.flag_action),
        flag=_flag(decision, trial, services),
        reason="; ".join(decision.messages),
        decided_at=decided_at,
        seen_version=seen_version,
        decision_id=decision.decision_id,
        details={
            "trial": trial.trial,
            "decision_key": decision_key,
            "evidence_key": trial.record_key("evidence"),
            "approved_by": None if answer is None else answer.by,
        },
    )


def _flag(decision: RecordedDecision, trial: Trial, services: Services) -> Flag:
    """The flag that the decision leads to."""
    if decision.flag_action is FlagAction.DISABLE or decision.candidate is None:
        return Flag(enabled=False, state="off", decision_id=decision.decision_id)
    plan = load_plan(services.store, trial)
    arm, baseline = asdict(plan.arm(decision.candidate)), asdict(plan.baseline)
    return promoted(arm, baseline, decision_id=decision.decision_id)


def _known_until(
    trial: Trial, answer: ApprovalAnswer | None, services: Services
) -> tuple[int, int | None]:
    """The time and the flag's version up to which the change knows of manual changes.

    Those of the approval, else of the trial's start. A trial that never recorded its start
    overrules nobody.
    """
    if answer is not None:
        return answer.at, answer.flag_version
    sort_key = ledger_keys.started_entry(trial.trial)
    for started in history(services.ledger.entries(trial.workload, sort_key)).started:
        return started.at, started.flag_version
    return 0, None
