"""A run that gets no machine waits, trains elsewhere meanwhile, and gives up in the end."""

from __future__ import annotations

import pytest

from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import CAPACITY, LIMIT, OUT_OF_MEMORY, Production

HOURS = 3600


@pytest.fixture
def production():
    return Production()


@pytest.fixture
def promoted(production):
    production.promote()
    production.begin()
    return production


def test_a_run_without_a_quota_waits(promoted):
    answer = promoted.record(LIMIT, "The account-level service limit is 0 Instances")

    assert ("wait", 300) == (answer["next"], answer["wait_seconds"])


def test_waiting_is_reported_once(promoted):
    messages = [promoted.record(LIMIT, "x")["tell"] for _ in range(3)]

    assert "waits" in messages[0]["message"]
    assert [None, None] == messages[1:]


def test_a_wait_that_is_recorded_again_is_the_same_one(promoted):
    attempt = promoted.attempt
    first = promoted.record(LIMIT, "x")
    promoted.attempt = attempt
    promoted.services.clock.seconds += 100

    assert first == promoted.record(LIMIT, "x")
    assert 1 == len(promoted.entries("run_waiting"))


def test_a_run_gives_up_waiting_within_a_day_and_is_recorded_as_not_run(production):
    production.begin()
    answers = [production.record(LIMIT, "x")]
    while answers[-1]["next"] == "wait":
        answers.append(production.record(LIMIT, "x"))

    assert "failed" == answers[-1]["next"]
    assert answers[-1]["tell"]
    waited = sum(entry["wait_seconds"] for entry in production.entries("run_waiting"))
    assert 23 * 3600 <= waited <= 24 * 3600
    (run,) = production.runs()
    assert ("NotRun", False, False) == (run.status, run.counts, run.finished)
    assert run.reason


def test_other_types_train_the_baseline_and_are_no_evidence():
    fallbacks = ("ml.p4d.24xlarge", "ml.g5.24xlarge")
    production = Production(change(SOUND, training__fallback_instances=fallbacks))
    production.promote()
    production.begin()

    answer = production.fails(CAPACITY)
    assert (0, None) == (answer["wait_seconds"], answer["tell"])
    assert "ml.p4d.24xlarge" == production.attempt["instance_type"]
    production.fails(CAPACITY)
    assert "ml.g5.24xlarge" == production.attempt["instance_type"]
    assert "watch" == production.completes()["next"]

    (run,) = production.runs()
    assert ("baseline", "fallback", "ml.g5.24xlarge", False, None) == (
        run.arm, run.why, run.instance_type, run.counts, run.decision_id,
    )  # fmt: skip
    assert run.finished
    assert "no evidence" in run.reason
    assert [("compile", 0), ("baseline", 1)] == [
        (entry["arm"], entry["attempt"]) for entry in production.entries("run_waiting")
    ]


def test_once_all_types_are_tried_the_run_pauses_and_begins_with_its_own():
    production = Production(change(SOUND, training__fallback_instances=("ml.p4d.24xlarge",)))
    production.promote()
    production.begin()
    production.fails(CAPACITY)

    answer = production.fails(CAPACITY)

    assert (300, None) == (answer["wait_seconds"], answer["attempt"]["instance_type"])
    production.completes()
    assert ["compile"] == [run.arm for run in production.runs()]


def test_a_type_on_which_the_job_cannot_run_is_left_out(caplog):
    fallbacks = ("ml.unknown.large", "ml.p4d.24xlarge")
    production = Production(change(SOUND, training__fallback_instances=fallbacks))
    production.begin()
    production.fails(CAPACITY)

    assert "ml.p4d.24xlarge" == production.attempt["instance_type"]
    assert "ml.unknown.large" in caplog.text


def test_a_rerun_that_waits_stays_a_rerun(promoted):
    promoted.fails(OUT_OF_MEMORY)
    promoted.record(LIMIT, "x")

    assert {"number": 2, "rerun": True, "instance_type": None} == promoted.attempt


def test_the_first_pause_can_be_given(promoted):
    assert 1 == promoted.record(LIMIT, "x", wait_seconds=1)["wait_seconds"]
