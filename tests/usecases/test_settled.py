"""The decision in the ledger and the flag, each written once whatever happens between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.workload.model import Candidate
from compilegate.usecases.trial.apply_flag import apply_flag
from compilegate.usecases.trial.documents import to_json
from compilegate.usecases.trial.plan_trial import plan_trial
from compilegate.usecases.trial.record_decision import record_decision
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, put_spec


def decide(services: Any, verdict: str, action: str) -> dict[str, Any]:
    """A recorded decision, as JudgeArms leaves it."""
    plan_trial(EVENT, services=services)
    key = naming.record_key("bert-docs", TRIAL, "decision")
    decision = {
        "decision_id": "d1", "verdict": verdict, "candidate": "compile", "judge_version": "0",
        "reasons": [{"code": "x", "message": "y"}], "flag": {"name": FLAG, "action": action},
    }  # fmt: skip
    services.store.put(key, to_json(decision))
    return {**EVENT, "decision_key": key}


def applied(event: dict[str, Any], services: Any) -> dict[str, Any]:
    answer = apply_flag(event, services=services)
    return {key: answer[key] for key in ("changed", "enabled")}


def test_a_decision_is_recorded_once(services: Any) -> None:
    event = decide(services, "promote", "enable")
    first = record_decision(event, services=services)
    record_decision(event, services=services)

    assert {
        "decision_id": "d1", "verdict": "promote", "flag_action": "enable",
        "approval_needed": False,
    } == first  # fmt: skip
    kinds = [entry["kind"] for entry in services.ledger.entries("bert-docs")]
    assert ["decision"] == kinds


def test_a_promotion_writes_the_ledger_first_and_then_the_flag(services: Any) -> None:
    event = decide(services, "promote", "enable")

    assert {"changed": True, "enabled": True} == applied(event, services)
    flag = json.loads(services.flags.read(FLAG))
    (entry,) = services.ledger.entries("bert-docs", "flag#")
    assert {"compiler": "torch_compile"} == flag["overrides"]
    assert flag == json.loads(entry["to"])
    told = {key: entry[key] for key in ("by", "reason", "decision_id", "trial", "evidence_key")}
    expected = {
        "by": "evaluate", "reason": "y", "decision_id": "d1", "trial": TRIAL,
        "evidence_key": naming.record_key("bert-docs", TRIAL, "evidence"),
    }  # fmt: skip
    assert expected == told


def test_a_learning_rate_that_followed_the_number_of_machines_is_in_the_flag(
    services: Any,
) -> None:
    twice = Candidate(name="compile", instance_count=2, learning_rate_scaling="linear")
    put_spec(services, change(SOUND, candidates=(twice,)))
    apply_flag(decide(services, "promote", "enable"), services=services)

    overrides = json.loads(services.flags.read(FLAG))["overrides"]
    rate = 2 * SOUND.training.learning_rate
    assert {"instance_count": 2, "learning_rate": rate} == overrides


def test_a_crash_between_ledger_and_flag_is_repaired_by_running_again(services: Any) -> None:
    event = decide(services, "promote", "enable")
    write = services.flags.write

    def crash(name: str, value: str) -> None:
        raise ConnectionError

    services.flags.write = crash
    with pytest.raises(ConnectionError):
        apply_flag(event, services=services)
    assert services.flags.read(FLAG) is None

    services.flags.write = write
    services.clock.seconds += 3600
    apply_flag(event, services=services)

    entry = services.ledger.entries("bert-docs")[0]
    assert services.flags.read(FLAG) == entry["to"]
    assert 1 == len(services.ledger.entries("bert-docs"))


@pytest.mark.parametrize("action", ["keep", "disable"])
def test_a_flag_that_is_off_stays_untouched(services: Any, action: str) -> None:
    event = decide(services, "stay_off", action)

    assert {"changed": False, "enabled": False} == applied(event, services)
    assert services.flags.read(FLAG) is None


def test_a_proven_loss_switches_an_enabled_flag_off(services: Any) -> None:
    apply_flag(decide(services, "promote", "enable"), services=services)
    later = {**decide(services, "stay_off", "disable"), "trial": "abcd1235"}

    assert {"changed": True, "enabled": False} == applied(later, services)
    assert not json.loads(services.flags.read(FLAG))["enabled"]
