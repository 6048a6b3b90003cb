"""After every production run: what is judged, recorded, done to the flag and sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.arithmetic import ratio
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.production.history import history
from compilegate.domain.reasons import advice
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import TrialDecided
from compilegate.report.notifications.review import SUBJECTS
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.production.announce_review import history_page
from compilegate.usecases.production.begin_run import begin_run
from compilegate.usecases.production.review_production import review_production
from compilegate.usecases.records import to_json
from tests.domain.evidence_builder import BASE_WALL, CENTRE, FINGERPRINT, judge
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    flag_entries,
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
from tests.usecases.trial_builder import FLAG, TRIAL

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
    measured: bool = True


KEEP: dict[str, Any] = {"policy__on_stale": "keep"}
THEIRS = "left as it is, because of the change by human:ann"
STORIES = {
    "a regression replaces a person's override": Story(
        [CRASH, CRASH], "probation reverted", (1, 2), off=True, by_person=True,
        words={2: ["This replaces the change by human:ann"]}),
    "what a person turned on records nothing": Story(
        [UNSEEN] * 8, "probation " * 8, (3, 6), by_person=True, words={6: [THEIRS]}),
    "what a person turned on before it was measured": Story(
        [{}, {}], "probation probation", (1,), by_person=True, measured=False,
        verdicts=(None, None),
        words={1: [SUBJECTS[None], "but did not measure it", "by hand after trial"]}),
    "a team's job without a registration": Story(
        [TEAM, TEAM | TORCH], "probation stale", (2,), off=True, registered=False,
        verdicts=("continue",)),
    "another code, and back": Story(
        [CODE, {}], "stale probation", (1, 2), policy=KEEP,
        words={2: ["production again trains what was proven", SUBJECTS["resume"]]}),
    "most runs do without the change": Story(
        [UNTREATED, UNTREATED], "probation stale", (1, 2), off=True,
        verdicts=("invalid", "invalid"), words={1: [advice("treatment_not_applied")]}),
    "nothing to judge": Story(
        [UNSEEN | {"metric": None}] * 6, "probation " * 5 + "stale", (3, 6), off=True,
        words={6: ["its runs record nothing to judge", "6 of them completed", "The flag is off"]}),
    "runs of another metric": Story(
        [EXCHANGED] * 6, "probation " * 5 + "stale", (1, 3, 6), off=True,
        words={1: ["it recorded f1, and the trial measured eval_loss"]}),
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
    if not story.measured:
        del services.store.objects[EVIDENCE]
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


def spoil(services: Any, plan: str) -> None:
    """What the trial behind the promotion had planned can no longer be compared."""
    if plan == "gone":
        del services.store.objects[PLAN]
    if plan == "damaged":
        arms = json.loads(services.store.get(PLAN))["arms"]
        edit(services, PLAN, arms=[{**arm, "hyperparameters": ["x"]} for arm in arms])
    if plan == "of other arms":
        edit(services, PLAN, arms=json.loads(services.store.get(PLAN))["arms"][:1])
    if plan == "of a spec that is gone":
        edit(services, PLAN, spec_key="workloads/bert-docs/specs/gone.json")


@pytest.mark.parametrize(
    "plan", ["sound", "gone", "damaged", "of other arms", "of a spec that is gone"]
)
def test_what_got_worse_goes_off_whatever_is_left_of_the_trials_plan(
    services: Any, plan: str
) -> None:
    promote(services)
    spoil(services, plan)
    for number in (1, 2):
        run_and_watch(services, number, **CRASH)

    assert "reverted" == flag_of(services).state


@pytest.mark.parametrize(
    ("policy", "other_code", "plan", "begins", "logged"),
    [
        ({}, True, "sound", ("baseline", "stale"), ["WARNING"]),
        (KEEP, True, "sound", ("compile", "flag"), []),
        ({}, False, "sound", ("compile", "flag"), []),
        ({}, False, "gone", ("compile", "flag"), ["ERROR"]),
        ({}, False, "damaged", ("compile", "flag"), ["ERROR"]),
        ({}, False, "of other arms", ("compile", "flag"), ["ERROR"]),
    ],
)
def test_a_run_trains_the_baseline_where_its_job_is_seen_to_be_another(
    services: Any, caplog: pytest.LogCaptureFixture, *, policy: Any, other_code: bool,
    plan: str, begins: tuple[str, str], logged: list[str],
) -> None:  # fmt: skip
    workload = change(SOUND, **policy)
    promote(services, workload)
    if other_code:
        register(services, put_other_spec(services, workload, "workloads/bert-docs/other.tgz"))
    spoil(services, plan)
    event = {"workload": WORKLOAD, "execution": "e", "started": "2026-11-01T00:00:00Z"}
    answer = begin_run(event, services=services)

    assert begins == (answer["arm"], answer["why"])
    assert logged == [one.levelname for one in caplog.records]
    (begun,) = history(entries(services)).begun
    words = "source code: was workloads/bert-docs/s.tgz"
    assert (answer["why"] == "stale") is (words in (begun.flag_explanation or ""))
    assert "probation" == flag_of(services).state  # left to the watch


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


@pytest.mark.parametrize(
    ("launched_by", "said"),
    [
        (("train", "train"), "3 to 12 runs each"),
        (("team", "team"), "your pipeline launches"),
        (("train", "team"), "every job that a team launches counts too"),
    ],
)
def test_an_alarm_says_who_makes_the_runs_that_check_it(
    services: Any, launched_by: tuple[str, str], said: str
) -> None:
    promote(services)
    for number, (who, metric) in enumerate(zip(launched_by, (CENTRE, WORSE), strict=True), 1):
        answer = run_and_watch(services, number, launched_by=who, metric=metric)

    assert "alarm" == looks(services)[-1]["tell"]
    assert said in answer["message"]


BIGGER = Flag(True, "probation", "b48", {"batch_size": 48}, "d9")


@pytest.mark.parametrize("by", [EVALUATE, "human:ann"])
def test_a_late_revert_leaves_alone_what_was_turned_on_meanwhile(by: str, services: Any) -> None:
    promote(services)
    event = broken_off(services)
    newer = FlagVersion(0, 0, "newer", by, "enable", "proven", BIGGER.to_json(),
                        decided_at=services.clock.now() + 1,
                        details={"trial": "newer123"})  # fmt: skip
    change_flag(WORKLOAD, newer, services=services)

    answer = review_production(event, services=services)

    assert not answer["flag_changed"]
    assert ("b48", True) == (flag_of(services).candidate, flag_of(services).enabled)
    assert ["enable", "enable"] == [entry["action"] for entry in flag_entries(services)]
    assert answer == review_production(event, services=services)


def broken_off(services: Any) -> dict[str, str]:
    """The look that settles on a revert, and dies before it appends to the flag's history."""
    record(services, 1, finished=False, metric=None)
    run = record(services, 2, finished=False, metric=None).run
    kept = services.ledger.raw.put_once

    def dies(workload: str, sort_key: str, entry: Any) -> Any:
        if sort_key.startswith("flag#"):
            raise ConnectionError("gone")
        return kept(workload, sort_key, entry)

    services.ledger.raw.put_once = dies
    with pytest.raises(ConnectionError):
        watch(services, run)
    services.ledger.raw.put_once = kept
    assert (
        "revert" == next(e for e in entries(services) if e["kind"] == "review")["change"]["action"]
    )
    return {"workload": WORKLOAD, "run": run}
