"""After every production run: what is judged, recorded, done to the flag and sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate import judges
from compilegate.domain import naming
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.reasons import advice
from compilegate.domain.records.production import ProbationEnd
from compilegate.usecases.trial.replay import find_decision, replay
from tests.domain.evidence_builder import CENTRE
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    flag_of,
    follow,
    promote,
    run_and_watch,
    say,
    watch,
)
from tests.usecases.trial_builder import TRIAL


def test_the_replay_finds_what_the_watch_has_kept(services: Any) -> None:
    promote(services)
    follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    decision_id = str(flag_of(services).decision_id)
    items = find_decision(decision_id, [WORKLOAD], services)
    again = replay(items, services, judges)

    assert "revert" == again.recorded["verdict"]
    assert again.comparison is not None
    assert again.comparison.equal


@pytest.mark.parametrize(
    ("loss", "verdict"), [(0.0, "permanent"), (TWO_MARGINS, "revert")], ids=["held", "lost"]
)
def test_the_last_decision_of_a_probation_is_recorded_beside_the_trials_own(
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
    change = review.transition
    assert (review.decision_id, change.change_id, change.reason) == (
        last.decision_id, last.change_id, last.reason,
    )  # fmt: skip
    again = watch(services, review.run)
    assert (verdict, review.decision_key) == (again["verdict"], again["decision_key"])
    assert (2, "train", review.action) == (last.version, last.by, last.action)
    assert (1, change.decided_at) == (last.based_on, last.decided_at)


@pytest.mark.parametrize("kind", ["nothing promoted", "turned off by hand", "set by hand"])
def test_what_no_trial_has_turned_on_is_not_watched(services: Any, kind: str) -> None:
    if kind != "nothing promoted":
        promote(services)
        own = Flag(kind == "set by hand", "probation", "mine", {"precision": "fp8"})
        say(services, own)
    answer = run_and_watch(services, 1)

    assert (None, False, False) == (answer["verdict"], answer["flag_changed"], answer["tell"])
    assert not [e for e in entries(services) if e["kind"] == "watch"]


def test_a_change_that_most_runs_do_without_is_reported_and_at_the_second_falls_back(
    services: Any,
) -> None:
    promote(services)
    first = run_and_watch(services, 1, applied=False)
    kept = flag_of(services)
    second = run_and_watch(services, 2, applied=False)

    assert ("invalid", True, "probation") == (first["verdict"], kept.enabled, kept.state)
    assert advice("treatment_not_applied") in first["message"]
    assert ("invalid", False, "stale") == (
        second["verdict"], flag_of(services).enabled, flag_of(services).state,
    )  # fmt: skip


def test_a_baseline_that_keeps_failing_is_reported_once_and_leaves_the_flag(services: Any) -> None:
    promote(services)
    kept = services.store.objects[naming.record_key(WORKLOAD, TRIAL, "evidence")]
    document = json.loads(kept)
    document["quality"]["history"] = []
    for arm in document["arms"]:
        arm["runs"] = [run for run in arm["runs"] if run["stage"] == "speed"]
    services.store.put(
        naming.record_key(WORKLOAD, TRIAL, "evidence"), json.dumps(document).encode()
    )
    answers = [
        run_and_watch(services, n, "baseline", finished=False, metric=None, wall_seconds=None)
        for n in range(1, 5)
    ]

    assert [False, False, True, False] == [answer["tell"] for answer in answers]
    assert advice("baseline_failed") in answers[2]["message"]
    assert "probation" == flag_of(services).state


def test_evidence_of_a_trial_that_cannot_be_read_leaves_the_flag_and_is_reported(
    services: Any,
) -> None:
    promote(services)
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    document = json.loads(services.store.get(key))
    document["quality"]["margin"] = "small"
    services.store.put(key, json.dumps(document).encode())
    answer = run_and_watch(services, 1)

    assert ("inconclusive", True, "probation") == (
        answer["verdict"], answer["tell"], flag_of(services).state,
    )  # fmt: skip
    body = json.loads(json.loads(answer["notification"]["message"])["default"])
    assert "compilegate flag history bert-docs --stage prod" == body["act"]
    assert "Repair what the job records" in answer["message"]


def test_without_the_trials_records_nothing_is_decided(services: Any) -> None:
    promote(services)
    del services.store.objects[naming.record_key(WORKLOAD, TRIAL, "evidence")]

    with pytest.raises(NotFoundError):
        run_and_watch(services, 1)
    assert "probation" == flag_of(services).state


WORSE = CENTRE - TWO_MARGINS


def team_night(services: Any, number: int, arm: str = "compile", **changed: Any) -> dict[str, Any]:
    return run_and_watch(services, number, arm, launched_by="team", why="team", **changed)


def looks(services: Any) -> list[Any]:
    return [entry for entry in entries(services) if entry["kind"] == "watch"]


def test_a_regression_in_a_teams_jobs_is_turned_off_although_none_was_asked_for(
    services: Any,
) -> None:
    promote(services)
    for number in range(1, 31):
        arm = "compile" if number % 6 else "baseline"
        answer = team_night(services, number, arm, **({"metric": WORSE} if number % 6 else {}))
        if not flag_of(services).enabled:
            break

    assert ("revert", "reverted") == (answer["verdict"], flag_of(services).state)
    assert ["alarm", "revert"] == [look["tell"] for look in looks(services) if look["tell"]]


def alarm(services: Any, *launched_by: str) -> str:
    promote(services)
    for number, who in enumerate(launched_by, 1):
        metric = WORSE if number == len(launched_by) else CENTRE
        answer = run_and_watch(services, number, launched_by=who, metric=metric)
    assert "alarm" == looks(services)[-1]["tell"]
    return str(answer["message"])


def test_runs_of_train_take_turns(services: Any) -> None:
    message = alarm(services, "train", "train")

    assert "3 to 12 runs each" in message
    assert "your pipeline" not in message


def test_of_a_teams_jobs_no_message_says_that_they_take_turns(services: Any) -> None:
    message = alarm(services, "team", "team")

    assert "take turns" not in message
    assert "your pipeline launches" in message
    assert (
        "takes about 18 jobs or more. `compilegate train bert-docs --stage prod` starts the next"
        in message
    )


def test_where_both_launch_jobs_both_are_named(services: Any) -> None:
    message = alarm(services, "train", "team")

    assert "TRAIN's runs" in message
    assert "every job that a team launches counts too" in message
