"""Flips the workload's flag as the decision says; the ledger entry is written first.

A crash between the two is repaired by running the step again: the entry then already holds
the value, which is written once more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from compilegate.domain.decision import FlagAction
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag, promoted
from compilegate.ports import Services
from compilegate.usecases.trial import Trial, load_record


def apply_flag(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Enable, disable or keep the flag; an unchanged flag is not written."""
    trial = Trial.from_event(event)
    decision = json.loads(services.store.get(event["decision_key"]))
    name, action = decision["flag"]["name"], decision["flag"]["action"]
    current = _current(services, name)
    wanted = _wanted(services, trial, decision, action)
    if wanted is None or (not wanted.enabled and not current.enabled):
        return {"changed": False, "enabled": current.enabled}
    entry = {
        "kind": "flag",
        "at": services.clock.now(),
        "trial": trial.trial,
        "action": action,
        "by": "evaluate",
        "decision_id": decision["decision_id"],
        "flag": name,
        "from": current.to_json(),
        "to": wanted.to_json(),
    }
    written = services.ledger.put_once(trial.workload, f"trial#{trial.trial}#flag", entry)
    services.flags.write(name, written["to"])
    return {"changed": True, "enabled": parse_flag(written["to"]).enabled}


def _current(services: Services, name: str) -> Flag:
    """A malformed flag reads as off: production falls back to the baseline as well."""
    try:
        return parse_flag(services.flags.read(name))
    except InvalidInputError:
        return OFF


def _wanted(
    services: Services, trial: Trial, decision: Mapping[str, Any], action: str
) -> Flag | None:
    if action == FlagAction.KEEP:
        return None
    since = datetime.fromtimestamp(services.clock.now(), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    decision_id = decision["decision_id"]
    if action == FlagAction.DISABLE:
        return Flag(enabled=False, state="off", decision_id=decision_id, since=since)
    plan = load_record(services.store, trial, "plan")
    arm = next(arm for arm in plan["arms"] if arm["name"] == decision["candidate"])
    return promoted(arm, plan["arms"][0], decision_id=decision_id, since=since)
