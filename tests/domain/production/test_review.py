"""The record of one review: what was judged, what differs, what follows, and which message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.decision import Decision, ProbationStep, RequestedArm, Verdict
from compilegate.domain.errors import InvalidEvidenceError, UnreadableRecordError
from compilegate.domain.production.fingerprint import compare_with_proven, recorded
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.probation import (
    Findings,
    flag_transition,
    probation_document,
    watched_runs,
)
from compilegate.domain.production.recent import Before
from compilegate.domain.production.review import ReviewInput, message_kind, review_promotion
from compilegate.domain.production.slower import speed_sum
from compilegate.domain.reasons import Reason
from compilegate.domain.records.ledger import DamagedRecord
from compilegate.domain.records.production import PlannedTransition, Review, SpeedSum
from compilegate.domain.workload.model import Policy
from tests.domain.evidence_builder import FINGERPRINT
from tests.domain.production import test_slower
from tests.domain.production.run_builder import BEGIN, DAY
from tests.domain.production.test_probation import ON, PROMOTION, run_of, trial

NOW = BEGIN + 9 * DAY
NO_NEWS = Review(5, "r", "t")
ONCE = (
    "run_unreadable", "nothing_to_judge", "not_measured", "speed_not_watched",
    "quality_not_watched", "guardrail_not_watched",
)  # fmt: skip


def saying(*codes: str, **more: Any) -> Review:
    return replace(NO_NEWS, notes=tuple(Reason(code, "") for code in codes), **more)


def moved(action: str, version: int = 1, *codes: str) -> Review:
    change = PlannedTransition(f"review#{version}#{action}", action, "{}", "why", 1)
    return saying(*codes, transition=change)


@pytest.mark.parametrize(
    ("review", "before", "kind"),
    [
        (NO_NEWS, None, None), (saying("other"), NO_NEWS, None),
        *[(moved(action), None, kind) for action, kind in (
            ("revert", "revert"), ("stale", "stale"), ("permanent", "permanent"),
            ("resume", "stale"), ("holdback", None))],
        (moved("revert", 2), moved("revert", 1), "revert"), (moved("revert"), NO_NEWS, "revert"),
        (moved("stale", 1, "alarm"), moved("stale", 1), None),
        (moved("holdback", 1, "alarm"), moved("holdback", 1), "alarm"),
        (saying("slower_now", "alarm"), None, "alarm"),
        (saying("slower_now", "alarm"), saying("alarm"), "slower"),
        (saying("slower_now"), saying("slower_now"), None),
        (saying("slower_now", verdict="invalid"), None, "slower"),
        *[(saying(verdict=now), saying(verdict=was), kind) for now, was, kind in (
            ("inconclusive", None, "failed"), ("inconclusive", "invalid", "failed"),
            ("invalid", "continue", "failed"), ("invalid", "invalid", None),
            ("continue", "invalid", None))],
        *[(saying(code), saying("other"), "failed") for code in ONCE],
        (saying(ONCE[0]), saying(ONCE[0]), None), (saying(ONCE[0]), saying(ONCE[1]), "failed"),
    ],
)  # fmt: skip
def test_a_review_is_worth_a_message_where_it_says_what_the_one_before_did_not(
    review, before, kind
):
    assert kind == message_kind(review, before)


def review_of(judge: Any = None, **changed: Any) -> tuple[ReviewInput, Review, Any]:
    """A review after the run ``r``, and what it starts from; without one, no judge is asked."""
    values = {"promotion": PROMOTION, "history": WorkloadHistory(), "evidence": trial(), "now": NOW}
    inputs = ReviewInput("bert-docs", "r", flag_name="/flag", **(values | changed))
    review, documents = review_promotion(inputs, judge or (lambda _: pytest.fail("is asked")))
    return inputs, review, documents


def earlier(at: int, action: str | None = None, **more: Any) -> Review:
    """A review of this promotion, or of what was on before it."""
    return replace(moved(action or "holdback"), at=at, trial=PROMOTION.trial, **more)


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ([], "failed"),
        ([replace(saying("not_measured"), at=BEGIN, trial=PROMOTION.trial)], None),
        ([replace(saying("not_measured"), at=BEGIN - 1, trial=PROMOTION.trial)], "failed"),
        ([replace(saying("not_measured"), at=BEGIN, trial="another")], "failed"),
    ],
)
def test_what_no_trial_has_measured_is_reported_once_and_never_judged(before, kind):
    """The review is not before the end of any run that it has seen."""
    last = [run_of(8), run_of(9, ended_at=NOW + 7.2), run_of(1)]
    past = WorkloadHistory(runs=tuple(last), reviews=tuple(before))
    of = replace(PROMOTION, by_human=True)
    _, review, documents = review_of(promotion=of, history=past, evidence=None)

    assert "planned compile but did not measure it" in review.notes[0].message
    assert "not_measured" == review.notes[0].code
    assert {} == documents
    assert review == Review(
        NOW + 8, "r", PROMOTION.trial, "compile", by_human=True, notes=review.notes,
        cooldown_days=Policy().cooldown_days, message_kind=kind,
    )  # fmt: skip
    _, review, _ = review_of(history=WorkloadHistory(runs=(run_of(1),)), evidence=None)
    assert NOW == review.at


STEP = ProbationStep((RequestedArm("baseline", confirm=True),), "why")
SAID = Decision(
    "bert-docs", "p1", "1", "probation", Verdict.INVALID, "compile",
    (Reason("alarm", "worse"),), next=STEP,
)  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "state"),
    [(None, "probation"), (Policy(cooldown_days=3.0, on_stale="keep"), "stale")],
)
def test_a_review_records_what_the_judge_said_of_which_runs_and_what_has_changed(policy, state):
    """Of two runs without the change and a lost one; the team's policy, else the trial's."""
    evidence = {**trial(history=()), "policy": {"cooldown_days": 5.0, "on_stale": "fall_back"}}
    today = run_of(3, applied=False, run="r", fingerprint={**FINGERPRINT, "torch": "3"})
    runs = [
        run_of(-1, "baseline"), run_of(0, "baseline"),
        run_of(1, applied=False, launched_by="team"), today,
        run_of(4, counts=False), run_of(5, metric="none"),
    ]  # fmt: skip
    lost = DamagedRecord({"kind": "run", "at": BEGIN}, UnreadableRecordError("torn"))
    past = WorkloadHistory(runs=tuple(runs), records=(lost,))
    promotion = replace(PROMOTION, flag=replace(ON, state=state))
    proven, registered = {"precision": "a", "code": "c"}, {"precision": "b", "batch_size": 1}
    inputs, review, documents = review_of(
        lambda _: SAID, promotion=promotion, history=past, evidence=evidence, policy=policy,
        proven=proven, registered=registered, holdback=0.1,
        before=Before(4, frozenset({"person"})),
    )  # fmt: skip

    made = recorded(evidence["arms"][1]["runs"])
    compared = compare_with_proven(proven, registered, measured={"compile": made}, runs=[today])
    assert ["precision_changed", "torch_changed"] == [one.code for one in compared.changed]
    said, shown = (
        f"decisions/bert-docs/abcd1234/probation/p1{end}.json" for end in ("", "-evidence")
    )
    watched = watched_runs(runs, promotion)
    assert review == Review(
        NOW, "r", "abcd1234", "compile", verdict="invalid", next=STEP, reasons=SAID.reasons,
        notes=review.notes, changed=compared.changed,
        differs=("asked precision", "compile torch", "the change is applied"),
        not_compared=("source code",), runs=7, unseen=2, launched_by=("person", "team", "train"),
        cooldown_days=policy.cooldown_days if policy else 5.0, decision_id="p1",
        transition=None if policy else flag_transition(
            promotion, Findings(SAID, compared.changed, untreated=2, holdback=0.1), "fall_back"
        ),
        decision_key=said, evidence_key=shown, message_kind="alarm" if policy else "stale",
    )  # fmt: skip
    assert ["run_unreadable"] * 2 == [note.code for note in review.notes]
    assert "1 runs, at last: torn" in review.notes[0].message
    document = probation_document(evidence, promotion, watched.runs, [runs[0]])
    decided = {**SAID.to_dict("/flag"), "trial": "abcd1234"}
    assert {shown: document, said: decided} == documents
    assert inputs.evidence == evidence


def test_evidence_that_the_judge_cannot_read_proves_nothing():
    def judge(_: Any) -> Decision:
        raise InvalidEvidenceError("is torn")

    _, review, documents = review_of(judge)

    assert ("inconclusive", "failed", None) == (
        review.verdict, review.message_kind, review.transition,
    )  # fmt: skip
    assert (Reason("evidence_invalid", "is torn"),) == review.reasons
    decided = next(one for key, one in documents.items() if not key.endswith("-evidence.json"))
    assert ("lm", "abcd1234-unreadable", "compile", "probation") == tuple(
        decided[key] for key in ("workload", "decision_id", "candidate", "stage")
    )


@pytest.mark.parametrize(("completed", "is_amiss"), [(6, True), (5, False)])
def test_runs_that_leave_nothing_to_judge_are_amiss_until_one_is_judged(completed, is_amiss):
    row = tuple(run_of(1 + n, counts=False) for n in range(completed))
    _, review, _ = review_of(lambda _: SAID, history=WorkloadHistory(runs=row))

    assert ("runs can be judged",) * is_amiss == review.differs
    assert is_amiss is (review.action == "stale")


APPLIED, CAN_BE_JUDGED, CODE = "the change is applied", "runs can be judged", "asked code"
SAME = {"code": "c"}
GOOD, FAILED, OTHER_ARM = (
    run_of(3, run="r"), run_of(3, run="r", finished=False, metric=None),
    run_of(3, "baseline", run="r"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("reviews", "today", "registered", "is_restored"),
    [
        ([("stale", [CODE])], [GOOD], SAME, True),
        ([("stale", [CODE])], [OTHER_ARM], SAME, True),
        ([("stale", [CODE])], [GOOD], {}, False),
        ([("stale", [CODE])], [run_of(3)], SAME, False),
        ([(None, [CODE])], [GOOD], SAME, False),
        ([("stale", [CODE]), (None, [APPLIED, CAN_BE_JUDGED])], [GOOD], SAME, True),
        ([("stale", [APPLIED])], [FAILED], SAME, False),
        ([("stale", [APPLIED])], [replace(GOOD, job="x"), FAILED], SAME, True),
        ([("stale", [APPLIED])], [OTHER_ARM], SAME, False),
        ([("stale", [APPLIED])], [run_of(3, run="r", applied=None)], SAME, False),
        ([("stale", [CAN_BE_JUDGED])], [FAILED], SAME, True),
        ([("stale", [CAN_BE_JUDGED])], [OTHER_ARM], SAME, False),
        ([("stale", ["asked image"]), ("resume", []), ("stale", [CODE])], [GOOD], SAME, True),
        ([("stale", [CODE]), (None, ["asked image"])], [GOOD], SAME, False),
    ],
)  # fmt: skip
def test_a_stale_promotion_resumes_once_all_that_was_amiss_was_seen_as_it_was(
    reviews, today, registered, is_restored
):
    stale = replace(PROMOTION, flag=replace(ON, state="stale"))
    before = [earlier(BEGIN + n, what, differs=tuple(of)) for n, (what, of) in enumerate(reviews)]
    past = WorkloadHistory(runs=tuple(today), reviews=tuple(before))
    quiet = replace(SAID, verdict=Verdict.CONTINUE)
    _, review, _ = review_of(
        lambda _: quiet, promotion=stale, history=past, proven=SAME, registered=registered
    )

    assert is_restored is (review.action == "resume")


@pytest.mark.parametrize(("total", "is_lost"), [(None, False), (7.9, False), (8.1, True)])
def test_once_permanent_only_a_row_that_went_wrong_is_judged_and_the_speed_is_watched(
    total, is_lost
):
    """By runs that speak for neither; one from before the promotion is in no sum."""
    made = test_slower.runs("cccccccbccc", test_slower.SPEEDUP**0.75)
    permanent = replace(PROMOTION, flag=replace(ON, state="permanent"), at=BEGIN)
    speed = SpeedSum(total, "") if total else None
    reviews = [
        earlier(BEGIN + n, speed=one) for n, one in enumerate((SpeedSum(9.0, ""), speed))
    ] * bool(total)
    past = WorkloadHistory(
        runs=(run_of(-1, "compile", wall_seconds=9e9), *made), reviews=tuple(reviews)
    )
    _, review, documents = review_of(
        promotion=permanent, history=past, speedup=test_slower.SPEEDUP, holdback=0.1
    )

    assert ({}, "holdback") == (documents, review.action)
    expected = speed_sum(speed, made, "compile", test_slower.SPEEDUP, now=NOW)
    assert (expected, None, ()) == (review.speed, review.verdict, review.reasons)
    assert ["slower_now"] * is_lost == [note.code for note in review.notes]
    assert all("at least 1.25x as fast" in note.message for note in review.notes)
    assert ("slower" if is_lost else None) == review.message_kind
    bad = tuple(run_of(n, finished=False, metric=None) for n in (20, 21))
    row = replace(past, runs=(*past.runs, *bad))
    _, review, documents = review_of(lambda _: SAID, promotion=permanent, history=row)
    shown = documents["decisions/bert-docs/abcd1234/probation/p1-evidence.json"]
    assert shown == probation_document(trial(), permanent, bad, [past.runs[0]])
    assert "invalid" == review.verdict


def test_entries_that_cannot_be_read_are_those_since_the_promotion_or_of_no_time():
    records = [
        DamagedRecord({"kind": "run", "at": at}, UnreadableRecordError(""))
        for at in (BEGIN - 1, BEGIN, None, BEGIN + 1)
    ]
    inputs, _, _ = review_of(history=WorkloadHistory(records=tuple(records)), evidence=None)

    assert records[1:] == inputs.damaged
