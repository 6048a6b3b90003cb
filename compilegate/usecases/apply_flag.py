"""Changes the workload's flag as a trial's decision says; repeating it is safe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.decision import FlagAction
from compilegate.domain.flag import Flag, promoted
from compilegate.domain.flag_change import EVALUATE, FlagChange
from compilegate.ports import Services
from compilegate.usecases.approval import approval_of, needs_approval
from compilegate.usecases.change_flag import Changed, change_flag, latest_flag
from compilegate.usecases.trial import Trial, load_record, save_record


def apply_flag(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Enable, disable or keep the flag; an unchanged flag is not written.

    Where the workload asks for approval, only a yes in the ledger promotes. What became of the
    flag is kept beside the decision: ``overrode`` and ``held_by`` name the person's word that was
    set aside or respected, ``approval`` the answer, null where nobody was asked.
    """
    trial = Trial.from_event(event)
    decision = json.loads(services.store.get(event["decision_key"]))
    action = str(decision["flag"]["action"])
    asked = approval_of(trial, services)
    answer = None if asked is None else asked.answer
    approved = not needs_approval(trial, action, services) or (asked is not None and asked.approved)
    made = (
        _kept(trial, services)
        if action == FlagAction.KEEP or not approved
        else _change(trial, decision, event["decision_key"], answer, services=services)
    )
    applied = {
        "changed": made.changed,
        "enabled": made.flag.enabled,
        "state": made.flag.state,
        "overrode": made.overrode,
        "held_by": made.held_by,
        "approved": approved,
        "approval": answer and {key: answer[key] for key in ("approved", "by", "at", "reason")},
    }
    save_record(services.store, trial, "flag", applied)
    return {key: applied[key] for key in ("changed", "enabled", "approval")}


def _kept(trial: Trial, services: Services) -> Changed:
    flag, version = latest_flag(trial.workload, services)
    return Changed(changed=False, flag=flag, version=version)


def _change(
    trial: Trial,
    decision: Mapping[str, Any],
    decision_key: str,
    answer: Mapping[str, Any] | None,
    *,
    services: Services,
) -> Changed:
    action = str(decision["flag"]["action"])
    known = _known(trial, services) if answer is None else answer
    change = FlagChange(
        change_id=f"trial#{trial.trial}#flag",
        by=EVALUATE,
        action=action,
        flag=_wanted(services, trial, decision, action),
        reason="; ".join(str(reason["message"]) for reason in decision["reasons"]),
        decided_at=int(known["at"]),
        seen_version=known.get("flag_version"),
        decision_id=decision["decision_id"],
        details={
            "trial": trial.trial,
            "decision_key": decision_key,
            "evidence_key": trial.record_key("evidence"),
            "approved_by": None if answer is None else answer["by"],
        },
    )
    return change_flag(trial.workload, change, services=services)


def _wanted(services: Services, trial: Trial, decision: Mapping[str, Any], action: str) -> Flag:
    decision_id = decision["decision_id"]
    if action == FlagAction.DISABLE:
        return Flag(enabled=False, state="off", decision_id=decision_id)
    plan = load_record(services.store, trial, "plan")
    arm = next(arm for arm in plan["arms"] if arm["name"] == decision["candidate"])
    return promoted(arm, plan["arms"][0], decision_id=decision_id)


def _known(trial: Trial, services: Services) -> Mapping[str, Any]:
    """How the trial began: what a person has said since, its evidence does not know.

    A trial that never wrote its beginning overrules nobody.
    """
    sort_key = ledger_keys.started_entry(trial.trial)
    started = services.ledger.entries(trial.workload, sort_key)
    return started[0] if started else {"at": 0}
