"""What a review starts from, and what it leaves in ledger, bucket and flag."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import (
    JUDGE_VERSION,
    Decision,
    ProbationStep,
    RequestedArm,
    Verdict,
)
from compilegate.domain.production.fingerprint import planned, registered_fingerprint
from compilegate.domain.production.history import WorkloadHistory, standing_promotion
from compilegate.domain.production.recent import Before
from compilegate.domain.production.review import ReviewInput
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import BegunRun, ProbationEnd, Review
from compilegate.domain.records.trials import TrialDecided
from compilegate.ports import Ledger
from compilegate.usecases.production import announce_review, review_production
from compilegate.usecases.production.begin_run import begin_run
from compilegate.usecases.production.record_run import on_run_ended
from compilegate.usecases.records import Trial, facts_for_workload, load_plan, spec_at, to_json
from tests.decision_builder import decision_document, saving, speedup
from tests.domain.production.run_builder import BEGIN, DAY
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    WORKLOAD,
    flag_of,
    promote,
    put_other_spec,
    record,
    register,
    say,
    trial_evidence,
)
from tests.usecases.trial_builder import FLAG, SPEC, TRIAL, ScriptedJudge

NOW = BEGIN + 20 * DAY
EVIDENCE, PLAN = (naming.record_key(WORKLOAD, TRIAL, name) for name in ("evidence", "plan"))
REGISTERED = naming.registration_key(WORKLOAD)
# 3 runs a week: one is due in 7 weeks of them, and a tenth by the policy.
UNKNOWN, TENTH = round(1 / 21, 4), change(SOUND, policy__holdback=0.1)
CHEAP, DEAR = saving(0.1), saving(10.0)  # $15.60 and $1,560 a year


def look(services: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    run = record(services, number).run
    event = {"workload": WORKLOAD, "run": run}
    return review_production.review_production(event, services=services, **more)


@pytest.fixture
def inputs(services: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the review of a run is made from, of which nothing follows."""
    made: list[ReviewInput] = []

    def quiet(of: ReviewInput, _judge: Any) -> tuple[Review, dict[str, Any]]:
        made.append(of)
        return Review(of.now, of.run, of.promotion.trial), {}

    def read() -> ReviewInput:
        nothing = {"verdict": None, "decision_key": None, "flag_changed": False, "tell": False}
        assert nothing == look(services)
        return made[-1]

    monkeypatch.setattr(review_production, "review_promotion", quiet)
    return read


def test_a_review_starts_from_trial_ledger_and_registration(services: Any, inputs: Any) -> None:
    promote(services)
    register(services, put_other_spec(services, TENTH, "workloads/bert-docs/other.tgz"))
    made, history = inputs(), services.ledger.history(WORKLOAD)
    promotion = standing_promotion(history.flags)
    assert promotion is not None
    registered = spec_at(services.store, "workloads/bert-docs/specs/other.json")
    facts = facts_for_workload(TENTH, services.settings)
    arm = load_plan(services.store, Trial(WORKLOAD, TRIAL, "")).arm("compile")
    expected = ReviewInput(
        WORKLOAD, history.runs[0].run, replace(promotion, metric="eval_loss"), made.history,
        trial_evidence(), services.clock.now(), FLAG, Before(),
        proven=planned(arm, spec_at(services.store, SPEC).job),
        registered=registered_fingerprint(promotion, registered.job, facts, region="us-east-1"),
        policy=TENTH.policy, holdback=0.1,
    )  # fmt: skip

    assert expected == made
    assert history.runs == made.history.runs
    codes = (expected.proven["code"], expected.registered["code"])
    assert ("workloads/bert-docs/s.tgz", "workloads/bert-docs/other.tgz") == codes


@pytest.mark.parametrize(
    ("decided", "share", "lower_end"),
    [
        ({"saving": DEAR, "speedup": speedup(2.0)}, UNKNOWN, 1.9),
        ({"saving": CHEAP, "speedup": {**speedup(2.0), "target": 0.9}}, 0.0, None),
        ({"saving": CHEAP}, 0.0, None),
        ({"saving": CHEAP, "speedup": speedup(2.0), "candidate": "b48"}, UNKNOWN, None),
        ({"schema": 2}, UNKNOWN, None),
        (None, UNKNOWN, None),
    ],
)
def test_what_the_trial_measured_of_the_candidate_sets_share_and_speed_up(
    services: Any, inputs: Any, decided: Any, share: float, lower_end: float | None
) -> None:
    promote(services)
    other = decision_document(saving=CHEAP, speedup=speedup(9.0))
    for trial, document in (("aaaa0000", other), (TRIAL, decided), ("zzzz0000", other)):
        if document is not None:
            services.store.put(trial, to_json(decision_document(**document)))
            services.ledger.append(WORKLOAD, TrialDecided(0, trial, "promote", trial))
    made = inputs()

    assert (share, lower_end) == (made.holdback, made.speedup)


RETIRED = {"schema": 1, "workload": WORKLOAD, "spec_key": SPEC, "active": False}
OTHER_ARMS = trial_evidence()
OTHER_ARMS["arms"][1]["name"] = "fp8"


@pytest.mark.parametrize(
    ("by_person", "key", "document", "compared"),
    [
        (False, REGISTERED, None, "evidence proven"),  # a team may train without one
        (False, REGISTERED, RETIRED, "evidence proven"),
        (False, REGISTERED, {**RETIRED, "active": True, "spec_key": "workloads/a/specs/x.json"},
         "evidence proven"),
        (False, PLAN, None, "evidence registered"),
        (False, PLAN, [], "evidence registered"),
        (False, EVIDENCE, OTHER_ARMS, "evidence proven registered"),
        (True, EVIDENCE, OTHER_ARMS, ""),
        (True, EVIDENCE, None, ""),
        (True, EVIDENCE, trial_evidence(), "evidence proven registered"),
    ],
)  # fmt: skip
def test_a_run_is_compared_with_what_can_be_read_and_was_measured(
    services: Any, inputs: Any, *, by_person: bool, key: str, document: Any, compared: str
) -> None:
    on = promote(services)
    if by_person:
        say(services, on)
    del services.store.objects[key]
    if document is not None:
        services.store.put(key, to_json(document))
    made = inputs()

    assert compared.split() == [name for name in ("evidence", "proven", "registered")
                                if getattr(made, name)]  # fmt: skip
    assert bool(made.registered) is (made.policy is not None) is (made.holdback is not None)
    assert ("eval_loss" if compared else "") == made.promotion.metric


@pytest.mark.parametrize(
    ("verdict", "ends"),
    [(Verdict.PERMANENT, True), (Verdict.REVERT, True), (Verdict.INVALID, False)],
)
def test_what_the_judge_says_is_recorded_and_done_once(
    services: Any, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, ends: bool
) -> None:
    refuted: list[Any] = []
    monkeypatch.setattr(announce_review, "announce_review", lambda *of: {"said": of})
    monkeypatch.setattr(review_production, "revoke_class", lambda *of: refuted.append(of))
    promote(services)
    (promoted,) = services.ledger.history(WORKLOAD).flags
    reasons = (Reason("speedup_held", "as fast"), Reason("quality_held", "as good"))
    step = ProbationStep((RequestedArm("baseline", confirm=True),), "to compare")
    judge = ScriptedJudge(Decision(
        WORKLOAD, "p1", JUDGE_VERSION, "probation", verdict, "compile", reasons, next=step,
    ))  # fmt: skip
    answer = look(services, judge=judge)

    said = f"decisions/bert-docs/{TRIAL}/probation/p1.json"
    shown = f"decisions/bert-docs/{TRIAL}/probation/p1-evidence.json"
    history, run = services.ledger.history(WORKLOAD), record(services, 1).run
    (review,) = history.reviews
    assert (said, shown, step) == (review.decision_key, review.evidence_key, review.next)
    assert [(WORKLOAD, review, services)] == refuted
    assert {"verdict": verdict, "decision_key": said, "flag_changed": ends, "tell": True}.items() \
        <= answer.items()  # fmt: skip
    changed = answer["said"][2]
    assert (WORKLOAD, review, services) == (*answer["said"][:2], answer["said"][3])
    assert json.loads(services.store.get(said))["trial"] == TRIAL
    assert services.store.has(shown)
    ended = ProbationEnd(
        review.at, TRIAL, run, "p1", said, shown, verdict, "compile", JUDGE_VERSION,
        ("as fast", "as good"),
    )  # fmt: skip
    assert (ended,) * ends == history.probation_ends
    if ends:
        flag = FlagVersion(
            2, services.clock.now(), f"review#1#{verdict}", "train", verdict, "as fast; as good",
            flag_of(services).to_json(), promoted.value, FLAG, decided_at=promoted.at + 1,
            based_on=1, decision_id="p1",
            details={"trial": TRIAL, "run": run, "decision_key": said, "evidence_key": shown},
        )  # fmt: skip
        assert (promoted, flag) == history.flags
        assert changed.version == 2
    before = dict(services.ledger.raw.items)
    assert {**answer, "said": None} == {**look(services, judge=judge), "said": None}
    assert before == services.ledger.raw.items
    assert 1 == len(judge.shown)
    assert ends or not look(services, 2, judge=judge)["tell"]


def test_where_nothing_is_on_there_is_nothing_to_review(services: Any) -> None:
    answer = look(services)

    assert {
        "verdict": None, "decision_key": None, "flag_changed": False, "tell": False,
    } == answer  # fmt: skip
    assert () == services.ledger.history(WORKLOAD).reviews


def began(days: float) -> str:
    """The id of a run that began so many days ago."""
    return naming.trial_id(1000 * int(NOW - days * DAY))


def begins(services: Any) -> None:
    started = datetime.fromtimestamp(NOW - 10 * DAY, UTC).isoformat()
    begin_run({"workload": WORKLOAD, "execution": "e", "started": started}, services=services)


def begins_after_another(services: Any) -> None:
    begun = BegunRun(0, began(10.5), "e", "baseline", "flag", 1, 1, "spec", "source")
    services.ledger.append(WORKLOAD, begun)
    begins(services)


def is_reviewed(services: Any) -> None:
    event = {"workload": WORKLOAD, "run": began(10)}
    review_production.review_production(event, services=services)


def of_a_team(services: Any) -> None:
    """Its runs may take any time."""
    del services.store.objects[REGISTERED]
    is_reviewed(services)


def broke_off(services: Any) -> None:
    """An execution that began no run."""
    detail = {"executionArn": "e", "status": "FAILED", "input": f'{{"workload": "{WORKLOAD}"}}'}
    assert not any(on_run_ended({"detail": detail}, services=services).values())


@pytest.mark.parametrize(
    ("step", "days"),
    [
        (begins, [10, 28, 112, 448, math.inf]),  # nothing before it numbers the run
        (begins_after_another, [10, 28]),
        (is_reviewed, [10, 28]),
        (of_a_team, [10, 28, 112]),
        (broke_off, [7, 28, 112]),
    ],
)
def test_a_step_reads_back_to_its_run_and_further_only_for_what_it_decides_on(
    services: Any, monkeypatch: pytest.MonkeyPatch, step: Any, days: list[float]
) -> None:
    """What was promoted 20 days ago, by runs that take three days at most."""
    promote(services)
    services.clock.seconds = NOW
    since, history = list[float](), Ledger.history

    def read(ledger: Ledger, workload: str, prefix: str = "", **more: Any) -> WorkloadHistory:
        since.extend([more.get("since", -math.inf)] * (not prefix))
        return history(ledger, workload, prefix, **more)

    monkeypatch.setattr(Ledger, "history", read)
    step(services)

    assert days == [(NOW - at) / DAY for at in since]


def test_runs_from_before_the_window_count_by_the_reviews_in_it(services: Any) -> None:
    """A permanent promotion of three months, of which a team started one of the first runs."""
    say(services, replace(promote(services), state="permanent"))
    for number in range(1, 92):
        run = naming.trial_id(1000 * (BEGIN + number * DAY))
        arm, by = "compile" if number % 10 else "baseline", "team" if number == 3 else "train"
        record(services, number, arm, run=run, job=f"{run}-p0", launched_by=by)
        seen = Review(services.clock.now(), run, TRIAL, "compile", runs=number,
                      launched_by=("team", "train"))  # fmt: skip
        if number < 91:
            services.ledger.append(WORKLOAD, seen)
    review_production.review_production({"workload": WORKLOAD, "run": run}, services=services)

    review = services.ledger.history(WORKLOAD).reviews[-1]
    assert (run, 91, ("team", "train")) == (review.run, review.runs, review.launched_by)
