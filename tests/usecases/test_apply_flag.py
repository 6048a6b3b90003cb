"""ApplyFlag: what it changes, and which manual changes a trial may replace."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import ledger_keys, naming
from compilegate.domain.codec import DocumentError
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.flag import Flag
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.apply_flag import apply_flag, record_decision
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import decision_document
from tests.usecases.flag_changes import flag_change
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, load


def decide(services: Any, verdict: str, action: str) -> dict[str, Any]:
    """A recorded decision, as JudgeArms leaves it."""
    plan_trial(EVENT, services=services)
    key = naming.record_key("bert-docs", TRIAL, "decision")
    decision = decision_document(verdict, flag={"name": FLAG, "action": action})
    services.store.put(key, to_json(decision))
    return {**EVENT, "decision_key": key}


def applied(event: dict[str, Any], services: Any) -> dict[str, Any]:
    answer = apply_flag(event, services=services)
    return {key: answer[key] for key in ("changed", "enabled")}


def test_a_promotion_that_names_no_candidate_changes_nothing(services: Any) -> None:
    event = decide(services, "promote", "enable")
    decision = json.loads(services.store.get(event["decision_key"]))
    services.store.put(event["decision_key"], to_json({**decision, "candidate": None}))

    with pytest.raises(InvalidEvidenceError, match="candidate"):
        apply_flag(event, services=services)

    assert [] == services.ledger.raw.entries("bert-docs", ledger_keys.FLAG_ENTRIES)


def test_a_decision_without_evidence_is_recorded_as_one_that_cost_nothing(services: Any) -> None:
    record_decision(decide(services, "promote", "enable"), services=services)

    assert [0.0] == [one.spent_usd for one in services.ledger.history("bert-docs").decided]


def record(event: dict[str, Any], services: Any, **changes: Any) -> dict[str, Any]:
    """The event of a decision that is changed where it is kept."""
    decision = json.loads(services.store.get(event["decision_key"]))
    services.store.put(event["decision_key"], to_json({**decision, **changes}))
    return event


def test_a_decision_that_does_not_say_what_to_do_with_the_flag_keeps_it(services: Any) -> None:
    event = record(decide(services, "promote", "enable"), services, flag=None)

    assert {"changed": False, "enabled": False} == applied(event, services)
    assert "off" == load(services, "flag")["state"]


DAMAGED = [{"speedup": {"estimate": None}}, {"reasons": None}, {"judge_version": None}, {"arms": 7}]


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_figures_keep_no_flag_on_and_turn_none_on(
    damage: dict[str, Any], services: Any
) -> None:
    apply_flag(decide(services, "promote", "enable"), services=services)
    promoted = record(decide(services, "promote", "enable"), services, **damage)
    with pytest.raises(DocumentError):
        apply_flag({**promoted, "trial": "abcd1236"}, services=services)

    later = record(decide(services, "stay_off", "disable"), services, **damage)
    assert {"changed": True, "enabled": False} == applied({**later, "trial": "abcd1235"}, services)


SKEW = 3600


def test_a_trial_without_a_start_time_outranks_no_manual_override(services: Any) -> None:
    change_flag("bert-docs", flag_change("human revert"), services=services)
    services.clock.seconds += 3600

    assert not apply_flag(decide(services, "promote", "enable"), services=services)["changed"]


@pytest.mark.parametrize(("said", "changed"), [("before the trial", True), ("since", False)])
def test_a_wrong_clock_does_not_change_which_decision_outranks(
    said: str, changed: bool, services: Any
) -> None:
    """Whoever speaks has a clock that is an hour fast before the trial, an hour slow after it."""
    event = decide(services, "promote", "enable")
    if said == "since":
        acquire_lock(EVENT, services=services)
    services.clock.seconds += SKEW if changed else -SKEW
    change_flag("bert-docs", flag_change("human revert"), services=services)
    services.clock.seconds += 60 - SKEW if changed else 60 + SKEW
    if said == "before the trial":
        acquire_lock(EVENT, services=services)

    assert changed is applied(event, services)["changed"]
    assert changed is (load(services, "flag")["held_by"] is None)


@pytest.mark.parametrize(("candidate", "changed"), [("compile", False), ("other", True)])
def test_a_trial_that_began_before_its_candidate_was_reverted_does_not_turn_it_on_again(
    candidate: str, changed: bool, services: Any
) -> None:
    event = decide(services, "promote", "enable")
    on = flag_change("human set" if candidate == "other" else "enable").flag
    change_flag("bert-docs", replace(flag_change("enable"), value=on.to_json()), services=services)
    acquire_lock(EVENT, services=services)
    off = Flag(False, "reverted", candidate)
    change_flag(
        "bert-docs",
        replace(flag_change("revert"), by="train", value=off.to_json()),
        services=services,
    )

    assert changed is applied(event, services)["enabled"]
    assert changed is (load(services, "flag")["held_by"] is None)


def left_bundle(services: Any, *runs: Any, arm: str = "compile") -> None:
    """The trial's evidence: full runs of an arm with what each left of compiled code."""
    records = [
        {"stage": "quality", "finished": True, **({"compile_bundle": run} if run else {})}
        for run in runs
    ]
    document = {"schema": 1, "arms": [{"name": arm, "runs": records}]}
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))


def saved(digit: str, state: str = "saved") -> dict[str, Any]:
    return {"state": state, "sha256": digit * 64, "bytes": 9, "ranks": 1}


def test_the_flag_names_the_bundle_that_the_candidates_latest_run_left(services: Any) -> None:
    left_bundle(services, saved("a"), saved("b"), None)
    apply_flag(decide(services, "promote", "enable"), services=services)

    digest = "b" * 64
    assert {
        "place": f"compile-cache/bert-docs/bundles/{digest}.json", "sha256": digest,
    } == json.loads(services.flags.read(FLAG))["compile_bundle"]  # fmt: skip


@pytest.mark.parametrize(
    ("arm", "run"),
    [
        ("compile", None),
        ("compile", saved("a", "restored")),
        ("compile", {"state": "saved"}),
        ("compile", {"state": "saved", "sha256": "../../other"}),
        ("baseline", saved("a")),
    ],
)
def test_a_flag_names_no_bundle_that_no_run_of_the_candidate_recorded(
    services: Any, arm: str, run: Any
) -> None:
    left_bundle(services, run, arm=arm)
    apply_flag(decide(services, "promote", "enable"), services=services)

    assert "compile_bundle" not in json.loads(services.flags.read(FLAG))
