"""After every production run: what is judged, recorded, done to the flag and sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.production.history import history
from compilegate.domain.reasons import advice
from compilegate.domain.records.production import ProbationEnd
from compilegate.domain.records.trials import TrialDecided
from compilegate.report.notifications.review import SUBJECTS
from compilegate.usecases.production.announce_review import history_page
from compilegate.usecases.production.begin_run import begin_run
from compilegate.usecases.records import to_json
from compilegate_judge.replay import find_decision, replay
from tests.domain.evidence_builder import BASE_WALL, CENTRE, FINGERPRINT, MINE_WALL, judge
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    flag_of,
    follow,
    promote,
    put_other_spec,
    record,
    register,
    run_and_watch,
    say,
    trial_evidence,
    watch,
)
from tests.usecases.trial_builder import FLAG, SPEC, TRIAL

EVIDENCE, PLAN = (naming.record_key(WORKLOAD, TRIAL, name) for name in ("evidence", "plan"))
WORSE = CENTRE - TWO_MARGINS
# What a run recorded that is not as usual.
CODE = {"fingerprint": {**FINGERPRINT, "code_sha256": "another"}}
TORCH = {"fingerprint": {**FINGERPRINT, "torch": "3.0"}}
CRASH = {"finished": False, "metric": None}
EXCHANGED = {"metric": 0.1, "metric_name": "f1"}
UNSEEN, UNTREATED = {"counts": False}, {"applied": False}
TEAM = {"launched_by": "team"}


def edit(services: Any, key: str, **changes: Any) -> dict[str, Any]:
    """Change a document of the trial; returns it."""
    document: dict[str, Any] = {**json.loads(services.store.get(key)), **changes}
    services.store.put(key, to_json(document))
    return document


def edit_quality(services: Any, **changes: Any) -> None:
    quality = json.loads(services.store.get(EVIDENCE))["quality"]
    edit(services, EVIDENCE, quality={**quality, **changes})


def looks(services: Any) -> list[Any]:
    return [entry for entry in entries(services) if entry["kind"] == "review"]


@dataclass(frozen=True)
class Story:
    """Production runs after a promotion, what is unusual of each, and the flag's state after each.

    ``sent`` are the runs, from 1, after which there is a message, ``words`` what those say.
    ``off``: the flag is off in the end. ``verdicts`` are those of the first runs.
    """

    runs: Sequence[Mapping[str, Any]]
    states: str
    sent: tuple[int, ...] = ()
    words: Mapping[int, Sequence[str]] = field(default_factory=dict)
    off: bool = False
    verdicts: tuple[str | None, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    by_person: bool = False
    registered: bool = True


KEEP: dict[str, Any] = {"policy__on_stale": "keep"}
THEIRS = "left as it is, because of the change by human:ann"
STORIES = {
    "a regression replaces a person's override": Story(
        [CRASH, CRASH], "probation reverted", (1, 2), off=True, by_person=True,
        words={2: ["This replaces the change by human:ann"]}),
    "another code of what a person turned on": Story(
        [CODE, CODE], "probation probation", (1,), by_person=True, words={1: [THEIRS]}),
    "what a person turned on records nothing": Story(
        [UNSEEN] * 8, "probation " * 8, (3, 6), by_person=True, words={6: [THEIRS]}),
    "a team's job without a registration": Story(
        [TEAM, TEAM | TORCH], "probation stale", (2,), off=True, registered=False,
        verdicts=("continue",)),
    "… that the team keeps on": Story(
        [TEAM, TEAM | TORCH], "probation stale", (2,), policy=KEEP, registered=False),
    "another code, and back": Story(
        [CODE, {}], "stale probation", (1, 2), policy=KEEP,
        words={2: ["production again trains what was proven", SUBJECTS["resume"]]}),
    "two fields, and each has to be seen": Story(
        [CODE, TORCH, {"fingerprint": {"code_sha256": FINGERPRINT["code_sha256"]}}, {}],
        "stale stale stale probation", (1, 4), policy=KEEP),
    **{
        f"another code, then {name}": Story([CODE, silent], "stale stale", sent, policy=KEEP)
        for name, silent, sent in (
            ("crashed", {**CRASH, "fingerprint": None}, (1, 2)),
            ("without a record", {"fingerprint": None}, (1,)),
            ("without that field", {"fingerprint": {"torch": FINGERPRINT["torch"]}}, (1,)),
            ("no evidence", UNSEEN, (1,)),
            ("unreadable", {"metric": float("nan")}, (1, 2)),
            ("the other arm", {"arm": "baseline"}, (1,)),
        )
    },
    "most runs do without the change": Story(
        [UNTREATED, UNTREATED], "probation stale", (1, 2), off=True,
        verdicts=("invalid", "invalid"), words={1: [advice("treatment_not_applied")]}),
    "… until it is applied again": Story(
        [UNTREATED, UNTREATED, {}, {}, {}], "probation stale stale probation probation", (1, 2, 4),
        policy=KEEP),
    "nothing to judge": Story(
        [UNSEEN | {"metric": None}] * 6, "probation " * 5 + "stale", (3, 6), off=True,
        words={6: ["its runs record nothing to judge", "6 of them completed", "The flag is off"]}),
    "nothing to judge, and seen again": Story(
        [UNSEEN] * 6 + [{}], "probation " * 5 + "stale probation", (3, 6, 7), policy=KEEP,
        words={7: [SUBJECTS["resume"]]}),
    "stopped jobs": Story(
        [UNSEEN | CRASH | {"status": "Stopped"}] * 11, "probation " * 11, (3,)),
    "runs of another metric": Story(
        [EXCHANGED] * 6, "probation " * 5 + "stale", (1, 3, 6), off=True,
        words={1: ["it recorded f1, and the trial measured eval_loss"]}),
    "runs that no release named": Story(
        [{"metric_name": None}] * 12, "probation " * 12, (1,)),
    "jobs without a wall clock": Story(
        [{"wall_seconds": None}] * 15, "probation " * 15, (1,),
        words={1: [advice("speed_not_watched"), "some of its runs are not watched"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_what_follows_from_each_run_and_who_hears_of_it(services: Any, name: str) -> None:
    story, states = STORIES[name], []
    on = promote(services, change(SOUND, **story.policy))
    if story.by_person:
        say(services, on)
    if not story.registered:
        del services.store.objects[naming.registration_key(WORKLOAD)]
    answers = []
    for number, unusual in enumerate(story.runs, 1):
        answers.append(run_and_watch(services, number, **unusual))
        states.append(flag_of(services).state)

    assert story.states.split() == states
    assert story.off is not flag_of(services).enabled
    assert story.sent == tuple(n for n, answer in enumerate(answers, 1) if answer["tell"])
    for number, words in story.words.items():
        said = f"{answers[number - 1]['subject']}\n{answers[number - 1]['message']}"
        assert [] == [one for one in words if one not in said]
    assert story.verdicts == tuple(a["verdict"] for a in answers[: len(story.verdicts)])


def test_no_new_trial_is_offered_where_production_again_trains_what_was_proven(
    services: Any,
) -> None:
    promote(services, change(SOUND, **KEEP))
    stale, resumed = (run_and_watch(services, n, **unusual) for n, unusual in enumerate((CODE, {})))

    assert "A new trial would" in stale["message"]
    assert SUBJECTS["resume"] in resumed["subject"]
    assert "A new trial would" not in resumed["message"]


@pytest.mark.parametrize(
    ("policy", "by_person", "plan", "unusual", "runs", "state"),
    [
        ({"policy__probation_runs": 2}, True, {}, {}, 2, "permanent"),
        ({}, False, {"speed_steps": "many"}, {"metric": WORSE}, 19, "reverted"),
        ({}, False, {"arms": 5}, {"metric": WORSE}, 19, "reverted"),
        ({**KEEP, "policy__probation_runs": 2}, False, {}, {**CODE, "metric": WORSE}, 19,
         "reverted"),
    ],
    ids=["a person's, held", "damaged plan", "damaged arms", "stale and kept on"],
)  # fmt: skip
def test_a_probation_ends_as_the_judge_says(
    services: Any, *, policy: Any, by_person: bool, plan: Any, unusual: Any, runs: int, state: str
) -> None:
    on = promote(services, change(SOUND, **policy))
    edit(services, PLAN, **plan)
    if by_person:
        say(services, on)
    follow(services, range(1, 1 + runs), **unusual)

    assert (state, state == "permanent") == (flag_of(services).state, flag_of(services).enabled)


@pytest.mark.parametrize(
    ("runs", "verdicts", "state"),
    [([{"metric": WORSE}, CRASH, CRASH], [None, None, "revert"], "reverted"),
     ([TORCH], [None], "stale")],
)  # fmt: skip
def test_after_permanence_only_runs_that_go_wrong_in_a_row_or_another_job_count(
    services: Any, runs: Any, verdicts: Any, state: str
) -> None:
    promote(services)
    follow(services, range(1, 13))
    assert "permanent" == flag_of(services).state
    answers = [run_and_watch(services, n, **unusual) for n, unusual in enumerate(runs, 13)]

    assert verdicts == [answer["verdict"] for answer in answers]
    assert (state, False) == (flag_of(services).state, flag_of(services).enabled)


def test_the_flag_has_the_share_of_baseline_runs_that_the_registered_policy_says(
    services: Any,
) -> None:
    promote(services)
    follow(services, range(1, 13))
    shares = [flag_of(services).holdback]
    same_code = json.loads(services.store.get(SPEC))["source_key"]
    raised = change(SOUND, policy__holdback=0.2)
    register(services, put_other_spec(services, raised, same_code))
    answers = [run_and_watch(services, number) for number in (13, 14)]
    shares.append(flag_of(services).holdback)
    # A trial whose saving is not worth a baseline run.
    decision = judge(trial_evidence()).to_dict(FLAG)
    decision["saving"]["usd_per_run"] = 0.1
    services.store.put("decision.json", to_json(decision))
    services.ledger.append(WORKLOAD, TrialDecided(0, TRIAL, "promote", "decision.json"))
    answers += [run_and_watch(services, 15)]

    assert ([0.0476, 0.2], 0.0) == (shares, flag_of(services).holdback)
    assert [(True, False), (False, False), (True, False)] == [
        (answer["flag_changed"], answer["tell"]) for answer in answers
    ]
    assert "permanent" == flag_of(services).state


def test_a_permanent_speed_up_that_is_lost_is_reported_once_with_the_price_of_a_new_trial(
    services: Any,
) -> None:
    promote(services)
    decision = judge(trial_evidence())
    services.store.put("decision.json", to_json(decision.to_dict(FLAG)))
    services.ledger.append(WORKLOAD, TrialDecided(0, TRIAL, "promote", "decision.json"))
    follow(services, range(1, 13))
    lost = {"wall_seconds": BASE_WALL}
    arms = [*["compile"] * 8, "baseline", *["compile"] * 5]
    answers = [run_and_watch(services, number, arm, **lost) for number, arm in enumerate(arms, 13)]

    told = [answer for answer in answers if answer["tell"]]
    assert [answers[11]] == told
    assert SUBJECTS["slower"] in told[0]["subject"]
    assert decision.speedup is not None
    # What the trial left open is no loss.
    assert f"at least {ratio(decision.speedup.interval[0])} as fast" in told[0]["message"]
    assert "A new trial would" in told[0]["message"]
    assert advice("slower_now") in told[0]["message"]
    assert "permanent" == flag_of(services).state
    page = json.loads(history_page(WORKLOAD, services).json)
    assert ["slower"] == [one["kind"] for one in page["events"] if one["kind"] == "slower"]


@pytest.mark.parametrize(
    ("policy", "enabled", "words"),
    [("fall_back", False, "The flag is off"), ("keep", True, "The flag is on, state stale")],
)
def test_another_code_is_stale_and_a_new_trial_is_offered_with_its_price(
    services: Any, policy: str, enabled: bool, words: str
) -> None:
    promote(services, change(SOUND, policy__on_stale=policy))
    answer = run_and_watch(services, 1, **CODE)
    body = json.loads(json.loads(answer["notification"]["message"])["default"])

    assert ("stale", enabled) == (flag_of(services).state, flag_of(services).enabled)
    assert "code that the job recorded: was c, is another" in answer["message"]
    assert words in answer["message"]
    assert re.search(r"A new trial would cost about \$[\d,.]+ \(\$", answer["message"])
    command = "compilegate run workloads/bert-docs.yaml --stage prod"
    assert ("stale", command) == (body["kind"], body["act"])
    assert f"Start it with: {command}" in answer["message"]


def test_a_metric_that_is_exchanged_late_neither_keeps_nor_ends_a_promotion(services: Any) -> None:
    """As a flag stays on with ``keep``: runs of the other metric are no evidence either way."""
    promote(services, change(SOUND, policy__probation_runs=4, **KEEP))
    follow(services, range(1, 3))
    other = change(SOUND, quality__metric="f1", **KEEP)
    register(services, put_other_spec(services, other, "workloads/bert-docs/s.tgz"))
    answers = [run_and_watch(services, number, **EXCHANGED) for number in range(3, 9)]

    assert "quality metric: was eval_accuracy, is f1" in answers[0]["message"]
    assert ("stale", True) == (flag_of(services).state, flag_of(services).enabled)
    assert {"continue"} == {answer["verdict"] for answer in answers}
    assert {2} == {look["runs"] for look in looks(services)[2:]}


@pytest.mark.parametrize(
    ("policy", "by_person", "other_code", "plan", "begins", "errors"),
    [
        ({}, True, True, "sound", ("compile", "flag"), 0),
        ({}, False, True, "sound", ("baseline", "stale"), 0),
        (KEEP, False, True, "sound", ("compile", "flag"), 0),
        ({}, False, False, "gone", ("compile", "flag"), 1),
        ({}, False, False, "damaged", ("compile", "flag"), 1),
        ({}, True, False, "gone", ("compile", "flag"), 0),
        (KEEP, False, False, "gone", ("compile", "flag"), 0),
    ],
)
def test_a_run_trains_the_baseline_where_its_job_is_seen_to_be_another(
    services: Any, caplog: pytest.LogCaptureFixture, *, policy: Any, by_person: bool,
    other_code: bool, plan: str, begins: tuple[str, str], errors: int,
) -> None:  # fmt: skip
    workload = change(SOUND, **policy)
    on = promote(services, workload)
    if by_person:
        say(services, on)
    if other_code:
        register(services, put_other_spec(services, workload, "workloads/bert-docs/other.tgz"))
    if plan == "gone":
        del services.store.objects[PLAN]
    if plan == "damaged":
        arms = json.loads(services.store.get(PLAN))["arms"]
        edit(services, PLAN, arms=[{**arm, "hyperparameters": ["x"]} for arm in arms])
    event = {"workload": WORKLOAD, "execution": "e", "started": "2026-11-01T00:00:00Z"}
    answer = begin_run(event, services=services)

    assert begins == (answer["arm"], answer["why"])
    assert errors == [one.levelname for one in caplog.records].count("ERROR")
    (begun,) = history(entries(services)).begun
    words = "source code: was workloads/bert-docs/s.tgz"
    assert (answer["why"] == "stale") is (words in (begun.flag_explanation or ""))
    assert "probation" == flag_of(services).state  # left to the watch


def test_columns_that_changed_are_not_forgotten_by_a_crash(services: Any) -> None:
    promote(services, change(SOUND, **KEEP))
    arms = json.loads(services.store.get(EVIDENCE))["arms"]
    for run in (run for arm in arms for run in arm["runs"]):
        run.setdefault("fingerprint", {})["data_schema_sha256"] = "a" * 64
    edit(services, EVIDENCE, arms=arms)
    other = {**FINGERPRINT, "data_schema_sha256": "b" * 64}
    run_and_watch(services, 1, fingerprint=other)
    run_and_watch(services, 2, fingerprint=None, **CRASH)
    run_and_watch(services, 3, fingerprint=other, counts=False)

    assert "stale" == flag_of(services).state


def test_a_registered_job_that_is_back_is_seen_with_the_next_run_that_counts(
    services: Any,
) -> None:
    kept = change(SOUND, **KEEP)
    promote(services, kept)
    larger = change(kept, training__batch_size=SOUND.training.batch_size * 2)
    register(services, put_other_spec(services, larger, "workloads/bert-docs/s.tgz"))
    run_and_watch(services, 1)
    register(services, SPEC)
    run_and_watch(services, 2, counts=False)
    unseen = flag_of(services).state
    run_and_watch(services, 3)

    assert ("stale", "probation") == (unseen, flag_of(services).state)


@pytest.mark.parametrize("arm", ["baseline", "compile"])
@pytest.mark.parametrize("seconds", [0, -1, None, "abc"])
def test_a_job_without_a_duration_does_not_break_the_history(
    services: Any, arm: str, seconds: Any
) -> None:
    promote(services)
    run_and_watch(services, 1, arm, wall_seconds=seconds)
    run_and_watch(services, 2)

    document = json.loads(history_page(WORKLOAD, services).json)
    assert [(arm, None), ("compile", MINE_WALL)] == [
        (run["arm"], run["wall_seconds"]) for run in document["runs"]
    ]


@pytest.mark.parametrize(
    "bad",
    [
        {"metric": float("nan")}, {"metric": "0.9"}, {"metric": float("inf")},
        {"wall_seconds": "abc"}, {"wall_seconds": -1}, {"seed": "x"}, {"applied": "yes"},
    ],
    ids=str,
)  # fmt: skip
def test_a_run_that_cannot_be_read_is_left_out_reported_once_and_hides_nothing(
    services: Any, bad: dict[str, Any]
) -> None:
    promote(services)
    first = run_and_watch(services, 1, **bad)
    second = run_and_watch(services, 2)
    counted = [look["runs"] for look in looks(services)]
    follow(services, range(3, 40), metric=WORSE)

    assert (True, False) == (first["tell"], second["tell"])
    assert "job cg-bert-docs-r0000001-p0-r0: run." in first["message"]
    assert "Repair what the job records" in first["message"]
    assert first["subject"].endswith("bert-docs: compile: some of its runs are not watched")
    assert ([0, 1], "reverted") == (counted, flag_of(services).state)


def test_an_earlier_run_that_cannot_be_read_is_no_history(services: Any) -> None:
    promote(services)
    edit_quality(services, history=[])
    record(services, -1, "baseline", metric=float("nan"))
    record(services, -2, "baseline", wall_seconds="abc")

    assert "continue" == run_and_watch(services, 1)["verdict"]


@pytest.mark.parametrize("evidence", ["none", "of another arm"])
def test_what_a_person_turned_on_is_watched_from_when_the_trial_has_measured_it(
    services: Any, evidence: str
) -> None:
    say(services, promote(services))
    kept = services.store.objects.pop(EVIDENCE)
    if evidence == "of another arm":
        document = json.loads(kept)
        document["arms"][1]["name"] = "fp8"
        services.store.put(EVIDENCE, to_json(document))
    first, second = (run_and_watch(services, n) for n in (1, 2))

    assert [(None, True), (None, False)] == [(a["verdict"], a["tell"]) for a in (first, second)]
    assert first["subject"].endswith(SUBJECTS[None])
    assert "but did not measure it" in first["message"]
    assert "by hand after trial" in first["message"]
    assert "probation" == flag_of(services).state
    services.store.objects[EVIDENCE] = kept
    assert "continue" == run_and_watch(services, 3)["verdict"]


def test_a_run_whose_entry_is_damaged_is_reported_and_the_others_are_judged(services: Any) -> None:
    promote(services)
    run_and_watch(services, 1)
    damaged = {"kind": "run", "run": "x", "at": services.clock.now()}
    services.ledger.raw.put_once(WORKLOAD, "run#x#j", damaged)
    run_and_watch(services, 2)

    last = looks(services)[-1]
    assert ["run_unreadable"] == [note["code"] for note in last["notes"]]
    assert "kind 'run'" in last["notes"][0]["message"]
    assert 2 == last["runs"]
    assert "A record cannot be read" in history_page(WORKLOAD, services).html


@pytest.mark.parametrize(
    ("loss", "verdict"), [(0.0, "permanent"), (TWO_MARGINS, "revert")], ids=["held", "lost"]
)
def test_the_last_decision_of_a_probation_is_recorded_and_can_be_replayed(
    services: Any, loss: float, verdict: str
) -> None:
    promote(services)
    follow(services, range(1, 31), metric=CENTRE - loss)
    past = services.ledger.history(WORKLOAD)
    review = next(one for one in past.reviews if one.action)

    assert (
        ProbationEnd(
            at=review.at, trial=TRIAL, run=review.run, decision_id=str(review.decision_id),
            decision_key=review.decision_key, evidence_key=review.evidence_key, verdict=verdict,
            candidate="compile", judge_version=JUDGE_VERSION,
            reasons=tuple(reason.message for reason in review.reasons),
        ),
    ) == past.probation_ends  # fmt: skip
    last, decided = past.flags[-1], {"trial": TRIAL, "run": review.run}
    kept = {"decision_key": review.decision_key, "evidence_key": review.evidence_key}
    assert {**decided, **kept} == dict(last.details)
    assert review.transition is not None
    transition = review.transition
    assert (review.decision_id, transition.change_id, transition.reason) == (
        last.decision_id, last.change_id, last.reason,
    )  # fmt: skip
    assert (2, "train", review.action) == (last.version, last.by, last.action)
    assert (1, transition.decided_at) == (last.based_on, last.decided_at)
    again = watch(services, review.run)
    assert (verdict, review.decision_key) == (again["verdict"], again["decision_key"])
    replayed = replay(find_decision(str(last.decision_id), [WORKLOAD], services), services)
    assert verdict == replayed.recorded["verdict"]
    assert replayed.comparison is not None
    assert replayed.comparison.equal


@pytest.mark.parametrize("kind", ["nothing promoted", "turned off by hand", "set by hand"])
def test_what_no_trial_has_turned_on_is_not_watched(services: Any, kind: str) -> None:
    if kind != "nothing promoted":
        promote(services)
        own = Flag(kind == "set by hand", "probation", "mine", {"precision": "fp8"})
        say(services, own)
    answer = run_and_watch(services, 1)

    assert (None, False, False) == (answer["verdict"], answer["flag_changed"], answer["tell"])
    assert [] == looks(services)


def test_a_baseline_that_keeps_failing_is_reported_once_and_leaves_the_flag(services: Any) -> None:
    promote(services)
    edit_quality(services, history=[])
    arms = json.loads(services.store.get(EVIDENCE))["arms"]
    speed = [[run for run in arm["runs"] if run["stage"] == "speed"] for arm in arms]
    edit(services, EVIDENCE, arms=[{**a, "runs": s} for a, s in zip(arms, speed, strict=True)])
    answers = [
        run_and_watch(services, n, "baseline", wall_seconds=None, **CRASH) for n in range(1, 5)
    ]

    assert [False, False, True, False] == [answer["tell"] for answer in answers]
    assert advice("baseline_failed") in answers[2]["message"]
    assert "probation" == flag_of(services).state


def test_evidence_of_a_trial_that_cannot_be_read_leaves_the_flag_and_is_reported(
    services: Any,
) -> None:
    promote(services)
    edit_quality(services, margin="small")
    answer = run_and_watch(services, 1)

    assert ("inconclusive", True, "probation") == (
        answer["verdict"], answer["tell"], flag_of(services).state,
    )  # fmt: skip
    body = json.loads(json.loads(answer["notification"]["message"])["default"])
    assert "compilegate flag history bert-docs --stage prod" == body["act"]
    assert "Repair what the job records" in answer["message"]


def test_without_the_trials_records_nothing_is_decided(services: Any) -> None:
    promote(services)
    del services.store.objects[EVIDENCE]

    with pytest.raises(NotFoundError):
        run_and_watch(services, 1)
    assert "probation" == flag_of(services).state


def test_a_regression_in_a_teams_jobs_is_turned_off_although_none_was_asked_for(
    services: Any,
) -> None:
    promote(services)
    for number in range(1, 31):
        arm, worse = ("compile", {"metric": WORSE}) if number % 6 else ("baseline", {})
        answer = run_and_watch(services, number, arm, why="team", **TEAM, **worse)
        if not flag_of(services).enabled:
            break

    assert ("revert", "reverted") == (answer["verdict"], flag_of(services).state)
    assert ["alarm", "revert"] == [look["tell"] for look in looks(services) if look["tell"]]


@pytest.mark.parametrize(
    ("launched_by", "said", "unsaid"),
    [
        (("train", "train"), ["3 to 12 runs each"], "your pipeline"),
        (("team", "team"), ["your pipeline launches", "takes about 18 jobs or more. `compilegate "
         "train bert-docs --stage prod` starts the next"], "take turns"),
        (("train", "team"), ["TRAIN's runs", "every job that a team launches counts too"],
         "your pipeline launches"),
    ],
)  # fmt: skip
def test_an_alarm_says_who_makes_the_runs_that_check_it(
    services: Any, launched_by: tuple[str, str], said: list[str], unsaid: str
) -> None:
    promote(services)
    for number, (who, metric) in enumerate(zip(launched_by, (CENTRE, WORSE), strict=True), 1):
        answer = run_and_watch(services, number, launched_by=who, metric=metric)

    assert "alarm" == looks(services)[-1]["tell"]
    assert [] == [words for words in said if words not in answer["message"]]
    assert unsaid not in answer["message"]
