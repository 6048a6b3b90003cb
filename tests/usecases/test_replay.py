"""A recorded decision comes out the same on its stored evidence, or it is said what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.place import PROJECT
from compilegate.usecases.records import Trial, load_record, save_decision, save_record, to_json
from compilegate.usecases.trial.apply_flag import record_decision
from compilegate_judge import judges
from compilegate_judge import replay as replaying
from compilegate_judge.replay import Replay, find_decision, replay
from tests.domain.evidence_builder import GOOD, document, judge
from tests.usecases.trial_builder import (
    EVENT,
    SPEC,
    TRIAL,
)
from tools.archive_judge import archive

NAME = "bert-docs"
ON = Trial(NAME, TRIAL, SPEC)


def recorded(services: Any, evidence: dict[str, Any]) -> str:
    """A trial that was decided on this evidence; returns the decision's id."""
    save_record(services.store, ON, "evidence", evidence)
    key = save_decision(services.store, ON, judge(evidence), stage=services.settings.stage)
    record_decision({**EVENT, "decision_key": key}, services=services)
    return str(load_record(services.store, ON, "decision")["decision_id"])


def again(services: Any, decision_id: str) -> Replay:
    return replay(find_decision(decision_id, [NAME], services), services)


def promoted() -> dict[str, Any]:
    return {**document(metrics=GOOD), "workload": NAME}


def change_decision(services: Any, **changes: Any) -> None:
    decision = load_record(services.store, ON, "decision")
    services.store.put(ON.record_key("decision"), to_json({**decision, **changes}))


def test_evidence_that_was_changed_is_found_even_where_the_verdict_stays(services: Any) -> None:
    evidence = promoted()
    decision_id = recorded(services, evidence)
    evidence["arms"][1]["runs"][0]["step_seconds"][0] *= 1.0001
    save_record(services.store, ON, "evidence", evidence)

    comparison = again(services, decision_id).comparison

    assert "decision_id" in [difference.field for difference in comparison.differences]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A release whose judge is another one than that of the records, which is archived."""
    archive(PROJECT, tmp_path)
    monkeypatch.setattr(judges, "FOLDER", tmp_path)
    monkeypatch.setattr(replaying, "JUDGE_VERSION", "99.0.0")


def test_a_judge_that_is_neither_todays_nor_archived_is_refused_with_what_to_do(
    services: Any,
) -> None:
    decision_id = recorded(services, promoted())
    change_decision(services, judge_version="0.9.0")

    with pytest.raises(InvalidInputError, match=r"got 'judge 0\.9\.0'.* Fix: use a release"):
        again(services, decision_id)


def test_an_archived_judge_refuses_what_it_refused(services: Any, later: None) -> None:
    decision_id = recorded(services, promoted())
    save_record(services.store, ON, "evidence", {"schema": 1, "workload": NAME})
    comparison = again(services, decision_id).comparison
    assert "verdict" in [difference.field for difference in comparison.differences]

    reasons = [{"code": "evidence_invalid", "message": "in its own words"}]
    change_decision(services, verdict="invalid", reasons=reasons)

    assert again(services, decision_id).comparison.equal


def test_a_trial_that_its_own_limit_ended_is_the_judges_word_and_the_limit(services: Any) -> None:
    decision_id = recorded(services, {**document(), "workload": NAME})
    decision = load_record(services.store, ON, "decision")
    assert "continue" == decision["verdict"]
    limit = {"code": "trial_over_budget", "message": "too dear"}
    change_decision(
        services, verdict="inconclusive", next=None, reasons=[limit, *decision["reasons"]],
        flag={**decision["flag"], "action": "keep"},
    )  # fmt: skip

    comparison = again(services, decision_id).comparison

    assert (True, limit) == (comparison.equal, comparison.limit)


def test_evidence_that_is_gone_is_said(services: Any) -> None:
    decision_id = recorded(services, promoted())
    del services.store.objects[ON.record_key("evidence")]

    replayed = again(services, decision_id)

    assert (None, True) == (replayed.comparison, "its evidence is gone" in str(replayed.why_not))


def test_what_never_became_evidence_cannot_be_replayed(services: Any) -> None:
    decision_id = recorded(services, promoted())
    reasons = [{"code": "evidence_invalid", "message": "the archive is broken"}]
    change_decision(services, verdict="invalid", reasons=reasons)

    assert "in a job's output" in str(again(services, decision_id).why_not)


@pytest.mark.parametrize("changed", [{"code": "other"}, {"arm": "other"}])
def test_another_code_or_arm_of_a_reason_is_a_difference(
    changed: dict[str, str], services: Any
) -> None:
    decision_id = recorded(services, promoted())
    first, *others = load_record(services.store, ON, "decision")["reasons"]
    change_decision(services, reasons=[{**first, **changed}, *others])

    (difference,) = again(services, decision_id).comparison.differences

    assert f"reasons[0].{next(iter(changed))}" == difference.field
