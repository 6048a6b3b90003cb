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
from compilegate.domain.flag_change import Override
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.utc import iso
from compilegate.usecases.flag.approval import answer_approval, ask_approval
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.apply_flag import apply_flag, record_decision
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import decision_document, speedup
from tests.domain.evidence_builder import document
from tests.domain.workload_builder import SOUND, change
from tests.usecases.flag_changes import FLAGS, OVERRIDES, flag_change
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, load, put_spec


def decide(services: Any, verdict: str, action: str) -> dict[str, Any]:
    """A recorded decision, as JudgeArms leaves it."""
    plan_trial(EVENT, services=services)
    key = naming.record_key("bert-docs", TRIAL, "decision")
    decision = decision_document(verdict, flag={"name": FLAG, "action": action})
    services.store.put(key, to_json(decision))
    return {**EVENT, "decision_key": key}


def record(event: dict[str, Any], services: Any, **changes: Any) -> dict[str, Any]:
    """The event of a decision that is changed where it is kept."""
    decision = json.loads(services.store.get(event["decision_key"]))
    services.store.put(event["decision_key"], to_json({**decision, **changes}))
    return event


def test_a_promotion_that_names_no_candidate_changes_nothing(services: Any) -> None:
    event = record(decide(services, "promote", "enable"), services, candidate=None)
    with pytest.raises(InvalidEvidenceError, match="candidate"):
        apply_flag(event, services=services)

    assert [] == services.ledger.raw.entries("bert-docs", ledger_keys.FLAG_ENTRIES)


PAID = {**document(), "plan": {"spent_usd": 12.5}}
EVIDENCE, PLAN = (naming.record_key("bert-docs", TRIAL, name) for name in ("evidence", "plan"))


@pytest.mark.parametrize(
    ("said", "left", "usd", "has_spreads"),
    [
        ({}, {EVIDENCE: PAID}, 12.5, True),
        ({}, {}, 0.0, False),
        ({}, {EVIDENCE: {"plan": {"spent_usd": 3.5}}}, 3.5, False),
        ({}, {EVIDENCE: PAID, PLAN: None}, 12.5, False),
        ({"verdict": "invalid"}, {EVIDENCE: PAID}, 12.5, False),
        ({"candidate": None}, {EVIDENCE: PAID}, 12.5, False),
    ],
)
def test_a_decision_is_recorded_with_what_its_trial_cost_and_has_shown_of_spreads(
    said: dict[str, Any], left: dict[str, Any], usd: float, has_spreads: bool, services: Any
) -> None:
    event = record(decide(services, "promote", "enable"), services, **said)
    for key, content in left.items():
        services.store.put(key, to_json(content))
        if content is None:
            del services.store.objects[key]
    answer = record_decision(event, services=services)

    verdict = said.get("verdict", "promote")
    assert {"decision_id": "d1", "verdict": verdict, "flag_action": "enable",
            "approval_needed": False} == answer  # fmt: skip
    ((made),) = services.ledger.history("bert-docs").decided
    assert has_spreads is (made.spreads is not None)
    assert made == TrialDecided(
        services.clock.now(), TRIAL, verdict, event["decision_key"], "d1",
        said.get("candidate", "compile"), "0", usd, ("1.4 times as fast",), made.spreads,
    )  # fmt: skip


@pytest.mark.parametrize("knows", ["nothing", "its start", "the answer"])
def test_a_change_says_what_it_rests_on_and_which_changes_it_accounts_for(
    knows: str, services: Any
) -> None:
    """A step on what is already on is a stack's alone, whatever the figures say."""
    began = int(services.clock.now())
    change_flag("bert-docs", flag_change("other enable"), services=services)
    if knows != "nothing":
        acquire_lock(EVENT, services=services)
    services.clock.seconds += 60
    change_flag("bert-docs", flag_change("disable"), services=services)
    if knows == "the answer":
        put_spec(services, change(SOUND, policy__approval="required"))
    reasons = [{"code": "speedup_proven", "message": said} for said in ("fast", "cheap")]
    event = record(
        decide(services, "promote", "enable"), services, reasons=reasons, speedup=speedup(1.4),
        layer={"on": "compile", "estimate": 1.02, "interval": [1.01, 1.03]},
    )  # fmt: skip
    if knows == "the answer":
        ask_approval(event, services=services)
        ana = Override("ana", "looks right")
        answer_approval("bert-docs", ana, approved=True, services=services)
    services.clock.seconds += 60
    answer = apply_flag(event, services=services)

    now = began + 120
    at, seen, by = {
        "nothing": (0, None, None), "its start": (began, 1, None),
        "the answer": (began + 60, 2, "human:ana"),
    }[knows]  # fmt: skip
    on = Flag(True, "probation", "compile", OVERRIDES, "d1", iso(now))
    expected = FlagVersion(
        version=3, at=now, change_id=f"trial#{TRIAL}#flag", by="evaluate", action="enable",
        reason="fast; cheap", value=on.to_json(), parameter=FLAG, decided_at=at, seen_version=seen,
        previous_value=replace(FLAGS["disable"], since=iso(began + 60)).to_json(),
        decision_id="d1", details={
            "trial": TRIAL, "decision_key": event["decision_key"], "evidence_key": EVIDENCE,
            "approved_by": by,
        },
    )  # fmt: skip
    assert expected == services.ledger.history("bert-docs").flags[-1]
    approval = by and {"approved": True, "by": by, "at": at, "reason": "looks right"}
    outcome = {"changed": True, "enabled": True, "approval": approval}
    assert outcome == answer
    more = {"state": "probation", "approved": True, "overrode": None, "held_by": None}
    kept = load(services, "flag")
    assert {**outcome, **more} == {key: kept[key] for key in {**outcome, **more}}


def test_a_decision_that_does_not_say_what_to_do_with_the_flag_keeps_it(services: Any) -> None:
    event = record(decide(services, "promote", "enable"), services, flag=None)

    kept = {"changed": False, "enabled": False, "approval": None}
    assert kept == apply_flag(event, services=services)
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
    off = apply_flag({**later, "trial": "abcd1235"}, services=services)
    assert {"changed": True, "enabled": False, "approval": None} == off


SKEW = 3600


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

    assert changed is apply_flag(event, services=services)["changed"]
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
    revert = replace(flag_change("revert"), by="train", value=off.to_json())
    change_flag("bert-docs", revert, services=services)

    assert changed is apply_flag(event, services=services)["enabled"]
    assert changed is (load(services, "flag")["held_by"] is None)


def test_the_flag_names_the_bundle_of_compiled_code_that_the_candidate_left(services: Any) -> None:
    digest = "b" * 64
    left = {"finished": True, "compile_bundle": {"state": "saved", "sha256": digest}}
    services.store.put(EVIDENCE, to_json({"arms": [{"name": "compile", "runs": [left]}]}))
    apply_flag(decide(services, "promote", "enable"), services=services)

    assert {
        "place": f"compile-cache/bert-docs/bundles/{digest}.json", "sha256": digest,
    } == json.loads(services.flags.read(FLAG))["compile_bundle"]  # fmt: skip
