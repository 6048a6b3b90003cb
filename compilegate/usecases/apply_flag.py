"""Changes the workload's flag as a trial's decision says; repeating it is safe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import FlagAction
from compilegate.domain.flag import Flag, promoted
from compilegate.domain.flag_change import EVALUATE, FlagChange
from compilegate.ports import Services
from compilegate.usecases.change_flag import change_flag, latest_flag
from compilegate.usecases.trial import Trial, load_record


def apply_flag(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Enable, disable or keep the flag; an unchanged flag is not written.

    ``overrode`` and ``held_by`` name the person's word that was set aside or respected.
    """
    trial = Trial.from_event(event)
    decision = json.loads(services.store.get(event["decision_key"]))
    action = str(decision["flag"]["action"])
    if action == FlagAction.KEEP:
        enabled = latest_flag(trial.workload, services)[0].enabled
        return {"changed": False, "enabled": enabled, "overrode": None, "held_by": None}
    change = FlagChange(
        change_id=f"trial#{trial.trial}#flag",
        by=EVALUATE,
        action=action,
        flag=_wanted(services, trial, decision, action),
        reason=" ".join(str(reason["message"]) for reason in decision["reasons"]),
        decided_at=_started_at(trial, services),
        decision_id=decision["decision_id"],
        details={
            "trial": trial.trial,
            "decision_key": event["decision_key"],
            "evidence_key": trial.record_key("evidence"),
        },
    )
    made = change_flag(trial.workload, change, services=services)
    return {
        "changed": made.changed,
        "enabled": made.flag.enabled,
        "overrode": made.overrode,
        "held_by": made.held_by,
    }


def _wanted(services: Services, trial: Trial, decision: Mapping[str, Any], action: str) -> Flag:
    decision_id = decision["decision_id"]
    if action == FlagAction.DISABLE:
        return Flag(enabled=False, state="off", decision_id=decision_id)
    plan = load_record(services.store, trial, "plan")
    arm = next(arm for arm in plan["arms"] if arm["name"] == decision["candidate"])
    return promoted(arm, plan["arms"][0], decision_id=decision_id)


def _started_at(trial: Trial, services: Services) -> int:
    """When the trial began: what a person has said since, its evidence does not know.

    A trial that never wrote its beginning overrules nobody.
    """
    sort_key = naming.started_entry(trial.trial)
    started = services.ledger.entries(trial.workload, sort_key)
    return int(started[0]["at"]) if started else 0
