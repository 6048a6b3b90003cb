"""A recorded decision comes out the same on its stored evidence, or it is said what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.records.production import ProbationEnd, Review
from compilegate.domain.records.trials import TrialDecided
from compilegate.place import PROJECT
from compilegate.usecases.records import Trial, load_record, save_decision, save_record, to_json
from compilegate.usecases.trial.apply_flag import record_decision
from compilegate_judge import judges
from compilegate_judge import replay as replaying
from compilegate_judge.comparison import Difference, compare
from compilegate_judge.replay import DecisionRecord, Replay, find_decision, replay
from tests.domain.evidence_builder import GOOD, document, judge
from tests.usecases.trial_builder import EVENT, SPEC, TRIAL
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


REASON = {"code": "open", "arm": "a", "message": "m", "fix": "f", "why": "w", "reason": "r"}
DECIDED = {
    "trial": "1", "verdict": "promote", "reasons": [REASON], "speedup": {"estimate": 1.5},
    "arms": [3, 5],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"trial": "2"}, []),
        ({"reasons": [{"code": "open", "arm": "a"}]}, []),
        ({"reasons": [{"code": "b", "arm": "b"}]}, ["reasons[0].arm", "reasons[0].code"]),
        ({"reasons": [REASON, REASON]}, ["reasons"]),
        ({"verdict": "revert"}, ["verdict"]),
        ({"verdict": "revert", "speedup": {"estimate": 1.6}}, ["speedup.estimate", "verdict"]),
        ({"speedup": None}, ["speedup"]),
        ({"arms": (3, 5)}, []),
        ({"arms": [5, 3]}, ["arms[0]", "arms[1]"]),
        ({"arms": [3]}, ["arms"]),
        ({"arms": None}, ["arms"]),
        ({"saving": 1.0}, ["saving"]),
    ],
)
def test_every_field_is_compared_but_the_trial_and_texts(
    changes: dict[str, Any], fields: list[str]
) -> None:
    other = {**DECIDED, **changes}

    for one, two in ((DECIDED, other), (other, DECIDED)):
        assert fields == [difference.field for difference in compare(one, two).differences]
    (difference,) = compare(DECIDED, {**DECIDED, "arms": [3, 7]}).differences
    assert Difference("arms[1]", 5, 7) == difference


LIMIT = {"code": "trial_over_time"}
ENDED = {"verdict": "inconclusive", "reasons": [LIMIT, REASON], "next": None,
         "flag": {"action": "keep"}}  # fmt: skip
OPEN = {"verdict": "continue", "reasons": [REASON], "next": {"runs": 3}, "flag": {"action": "wait"}}


@pytest.mark.parametrize(
    ("recorded", "replayed", "limit", "fields"),
    [
        ({}, {}, LIMIT, []),
        ({"stage": "speed"}, {}, LIMIT, ["stage"]),
        ({"reasons": [LIMIT]}, {}, None, ["flag.action", "next", "reasons[0].arm",
                                          "reasons[0].code", "verdict"]),
        ({}, {"verdict": "promote"}, None, ["flag.action", "next", "reasons", "verdict"]),
        ({"verdict": "stay_off"}, {}, None, ["flag.action", "next", "reasons", "verdict"]),
    ],
)  # fmt: skip
def test_a_limit_stands_before_all_of_the_judges_own_reasons_and_explains_the_verdict_alone(
    recorded: dict[str, Any], replayed: dict[str, Any], limit: Any, fields: list[str]
) -> None:
    comparison = compare({**ENDED, **recorded}, {**OPEN, **replayed})

    assert limit == comparison.limit
    assert fields == [difference.field for difference in comparison.differences]


def test_a_decision_is_looked_up_by_its_id_with_its_own_evidence_else_its_trials(
    services: Any,
) -> None:
    for record in (
        TrialDecided(1, "t1", "promote", decision_id="d1", decision_key="k1"),
        TrialDecided(2, "t2", "promote", decision_id="d2"),  # by a release that kept no key
        Review(3, "run", "t1", decision_id="d3", decision_key="k3", evidence_key="e3"),
        ProbationEnd(4, "t2", decision_id="d4", decision_key="k4", evidence_key="e4"),
        ProbationEnd(5, "t1", decision_id="d5", decision_key="k5"),
    ):
        services.ledger.append(NAME, record)
    own = naming.record_key(NAME, "t1", "evidence")
    places = {
        "d1": ("t1", "k1", own), "d3": ("t1", "k3", "e3"), "d4": ("t2", "k4", "e4"),
        "d5": ("t1", "k5", own),
    }  # fmt: skip

    assert {one: DecisionRecord(NAME, *place) for one, place in places.items()} == {
        one: find_decision(one, ["other", NAME], services) for one in places
    }
    for names, where in (([], "0 workloads"), ([NAME], NAME), ([NAME, "b", "c"], f"{NAME}, b, c"),
                         ([NAME, *"bcd"], "4 workloads")):  # fmt: skip
        with pytest.raises(InvalidInputError) as error:
            find_decision("d2", names, services)
        assert f"is not a decision recorded for {where}" == error.value.problem


def test_evidence_that_is_gone_is_said(services: Any) -> None:
    decision_id = recorded(services, promoted())
    del services.store.objects[ON.record_key("evidence")]

    replayed = again(services, decision_id)

    assert (None, True) == (replayed.comparison, "its evidence is gone" in str(replayed.why_not))


@pytest.mark.parametrize(
    ("stage", "code", "why"),
    [
        ("quality", "evidence_invalid", "in a job's output"),
        ("speed", "clock_implausible", "in a job's output"),
        ("plan", "trial_over_budget", "so that there is no evidence"),
        ("eligibility", "not_gpu", "nothing was measured"),
    ],
)
def test_what_never_became_evidence_cannot_be_replayed(
    services: Any, stage: str, code: str, why: str
) -> None:
    decision_id = recorded(services, promoted())
    reasons = [{"code": code, "message": "the archive is broken"}]
    change_decision(services, stage=stage, verdict="invalid", flag=None, reasons=reasons)

    replayed = again(services, decision_id)

    assert (None, True) == (replayed.comparison, why in str(replayed.why_not))
