"""Runs that a watch cannot judge: never its end, never a proof, one message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.reasons import advice
from compilegate.report.notifications.review import SUBJECTS
from compilegate.usecases.production.announce_review import history_page
from tests.domain.evidence_builder import CENTRE, MINE_WALL
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    flag_of,
    follow,
    promote,
    record,
    run_and_watch,
    say,
)
from tests.usecases.trial_builder import TRIAL


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


UNREADABLE = {
    "metric not a number": {"metric": float("nan")},
    "metric as text": {"metric": "0.9"},
    "metric without end": {"metric": float("inf")},
    "duration as text": {"wall_seconds": "abc"},
    "duration below nothing": {"wall_seconds": -1},
    "seed as text": {"seed": "x"},
    "applied as text": {"applied": "yes"},
}


@pytest.mark.parametrize("bad", UNREADABLE.values(), ids=UNREADABLE)
def test_a_run_that_cannot_be_read_is_left_out_reported_once_and_hides_nothing(
    services: Any, bad: dict[str, Any]
) -> None:
    promote(services)
    first = run_and_watch(services, 1, **bad)
    second = run_and_watch(services, 2)
    looks = [entry for entry in entries(services) if entry["kind"] == "watch"]
    follow(services, range(3, 40), metric=CENTRE - TWO_MARGINS)

    assert (True, False) == (first["tell"], second["tell"])
    assert "job cg-bert-docs-r0000001-p0-r0: run." in first["message"]
    assert "Repair what the job records" in first["message"]
    assert first["subject"].endswith("bert-docs: compile: some of its runs are not watched")
    assert [0, 1] == [look["runs"] for look in looks]
    assert "reverted" == flag_of(services).state


def test_an_earlier_run_that_cannot_be_read_is_no_history(services: Any) -> None:
    promote(services)
    evidence_without_history(services)
    record(services, -1, "baseline", metric=float("nan"))
    record(services, -2, "baseline", wall_seconds="abc")
    answer = run_and_watch(services, 1)

    assert "continue" == answer["verdict"]


def test_runs_that_end_with_nothing_to_judge_make_the_promotion_stale(services: Any) -> None:
    promote(services)
    answers = [run_and_watch(services, n, counts=False, metric=None) for n in range(1, 7)]
    last = answers[-1]

    assert [False, False, True, False, False, True] == [answer["tell"] for answer in answers]
    assert (False, "stale") == (flag_of(services).enabled, flag_of(services).state)
    assert last["subject"].endswith("its runs record nothing to judge")
    assert "6 of them completed" in last["message"]
    assert "The flag is off" in last["message"]


def test_jobs_that_were_stopped_are_reported_and_no_reason_to_turn_off(services: Any) -> None:
    promote(services)
    for n in range(1, 12):
        run_and_watch(services, n, counts=False, status="Stopped", finished=False, metric=None)

    assert "probation" == flag_of(services).state


def test_a_promotion_left_on_unseen_is_on_probation_again_once_it_is_seen(services: Any) -> None:
    promote(services, change(SOUND, policy__on_stale="keep"))
    for n in range(1, 7):
        run_and_watch(services, n, counts=False)
    unseen = flag_of(services)
    answer = run_and_watch(services, 7)

    assert (True, "stale") == (unseen.enabled, unseen.state)
    assert (True, "probation") == (flag_of(services).enabled, flag_of(services).state)
    assert answer["subject"].endswith(SUBJECTS["resume"])
    assert "A new trial would" not in answer["message"]


def test_what_a_person_turned_on_that_records_nothing_is_reported_and_left_to_them(
    services: Any,
) -> None:
    say(services, promote(services))
    answers = [run_and_watch(services, n, counts=False) for n in range(1, 9)]

    assert flag_of(services).enabled
    assert "left as it is, because of the change by human:ann" in answers[5]["message"]
    assert [3, 6] == [n for n, answer in enumerate(answers, 1) if answer["tell"]]


def test_jobs_without_a_wall_clock_never_become_permanent_and_it_is_reported_once(
    services: Any,
) -> None:
    promote(services)
    answers = [run_and_watch(services, n, wall_seconds=None) for n in range(1, 16)]

    assert "probation" == flag_of(services).state
    assert [1] == [n for n, answer in enumerate(answers, 1) if answer["tell"]]
    assert advice("speed_not_watched") in answers[0]["message"]
    assert "some of its runs are not watched" in answers[0]["subject"]


@pytest.mark.parametrize("evidence", ["none", "of another arm"])
def test_what_a_person_turned_on_unmeasured_is_not_watched_and_that_is_reported_once(
    services: Any, evidence: str
) -> None:
    say(services, promote(services))
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    document = json.loads(services.store.get(key))
    del services.store.objects[key]
    if evidence == "of another arm":
        document["arms"][1]["name"] = "fp8"
        services.store.put(key, json.dumps(document).encode())
    first, second = (run_and_watch(services, n) for n in (1, 2))

    assert [(None, True), (None, False)] == [(a["verdict"], a["tell"]) for a in (first, second)]
    assert first["subject"].endswith(SUBJECTS[None])
    assert "but did not measure it" in first["message"]
    assert "by hand after trial" in first["message"]
    assert "probation" == flag_of(services).state


def test_what_a_person_turned_on_is_watched_from_when_the_trial_has_measured_it(
    services: Any,
) -> None:
    say(services, promote(services))
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    kept = services.store.objects.pop(key)
    run_and_watch(services, 1)
    services.store.objects[key] = kept

    assert "continue" == run_and_watch(services, 2)["verdict"]


def evidence_without_history(services: Any) -> None:
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    document = json.loads(services.store.get(key))
    document["quality"]["history"] = []
    services.store.put(key, json.dumps(document).encode())


def test_a_run_whose_entry_is_damaged_is_reported_and_the_others_are_judged(services: Any) -> None:
    promote(services)
    run_and_watch(services, 1)
    damaged = {"kind": "run", "run": "x", "at": services.clock.now()}
    services.ledger.raw.put_once(WORKLOAD, "run#x#j", damaged)
    run_and_watch(services, 2)

    last = [entry for entry in entries(services) if entry["kind"] == "watch"][-1]
    assert ["run_unreadable"] == [note["code"] for note in last["notes"]]
    assert "kind 'run'" in last["notes"][0]["message"]
    assert 2 == last["runs"]
    assert "A record cannot be read" in history_page(WORKLOAD, services).html
