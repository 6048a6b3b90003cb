"""How an attempt that the state machine no longer waits for is recorded, and what is stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.production.attempts import (
    FIRST_SECONDS,
    NO_ATTEMPT,
    RUN_SECONDS,
    Attempt,
    AttemptEnd,
    attempt_number,
    attempt_of,
    most_wait_seconds,
    next_wait,
)
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.recorded_run import (
    NOT_RUN,
    AttemptOutcome,
    EndedAttempt,
    StillTrainsError,
    attempt_answer,
    attempt_outcome,
    notifies_owner,
    runs_in_progress,
)
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.request.build import JobSite
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from compilegate.usecases.job_requests import request_limits
from tests.domain.workload_builder import SOUND, change

NOW, JOB, DUPLICATE = 1_790_000_000, "cg-bert-docs-r-p0-r1", "cg-bert-docs-r-p0-r0"
BEGUN = BegunRun(
    at=NOW - 10, run="r", execution="e", arm="compile", why="flag", seed=1, number=1,
    spec_key="s", source_key="s.tgz",
)  # fmt: skip
SITE = JobSite("prod", "data", "us-east-1", "arn:aws:iam::123456789012:role/compilegate-")
ELSEWHERE = change(SOUND, training__fallback_instances=("ml.g5.2xlarge",))
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def ended(
    status: str | None = None, error: str = "", *, reason: str = "", workload: Workload = SOUND,
    first_wait: float = FIRST_SECONDS, begun: BegunRun = BEGUN, attempt: Attempt = NO_ATTEMPT,
    **more: Any,
) -> EndedAttempt:  # fmt: skip
    """An attempt whose job is described so, None for one that never was."""
    described = {"TrainingJobStatus": status, "FailureReason": reason} if status else {}
    reported = AttemptEnd(SOUND.name, "r", JOB, attempt, error, first_wait_seconds=first_wait)
    jobs = RunJobs(TrainedJob(workload, "code"), load_facts(), SITE, request_limits())
    return EndedAttempt(reported, begun, jobs, described, NOW, **more)


def outcome(status: str | None, error: str = "", **more: Any) -> AttemptOutcome:
    """Its outcome."""
    return attempt_outcome(ended(status, error, **more))


@pytest.mark.parametrize("status", ["Completed", "Stopped", None])
def test_a_job_that_is_not_in_progress_is_recorded_and_only_its_twins_are_stopped(
    status,
):
    recorded = outcome(status, "SageMaker.AmazonSageMakerException", duplicates=(DUPLICATE,))

    assert isinstance(recorded.record, ProductionRun)
    assert (JOB, (DUPLICATE,)) == (recorded.record.job, recorded.stop)


def test_a_job_in_progress_is_not_recorded():
    with pytest.raises(StillTrainsError, match=f"{JOB} is still training"):
        outcome("InProgress", "SageMaker.AmazonSageMakerException")


def test_a_job_in_progress_after_its_time_is_stopped_with_its_twins_and_recorded():
    recorded = outcome("InProgress", "States.Timeout", duplicates=(DUPLICATE,))

    assert isinstance(recorded.record, ProductionRun)
    assert (False, (JOB, DUPLICATE)) == (recorded.record.counts, recorded.stop)


def test_a_job_without_capacity_waits_as_long_as_the_first_wait_is():
    recorded = outcome("Failed", reason=CAPACITY, first_wait=7.0)

    assert isinstance(recorded.record, CapacityWait)
    assert (7, JOB, ()) == (recorded.record.wait_seconds, recorded.record.job, recorded.stop)


def test_a_run_that_may_not_wait_is_recorded_as_not_run():
    workload = change(SOUND, schedule__max_wait_hours=0.0)
    recorded = outcome("Failed", reason=CAPACITY, workload=workload)

    assert isinstance(recorded.record, ProductionRun)
    assert (NOT_RUN, False) == (recorded.record.status, recorded.record.counts)
    assert str(recorded.record.reason).startswith("gave up waiting for machines: ")


def test_after_a_wait_the_same_arm_is_tried_again_on_the_type_that_the_wait_names():
    wait = outcome("Failed", reason=CAPACITY, workload=ELSEWHERE).record

    again = ended(attempt=Attempt(2, rerun=True))
    assert Attempt(3, rerun=True, instance_type="ml.g5.2xlarge") == (
        attempt_answer(wait, again).attempt
    )


def test_a_candidate_that_failed_is_followed_by_a_rerun_and_no_other_run_by_anything():
    failed, completed = (outcome(status).record for status in ("Failed", "Completed"))

    assert Attempt(1, rerun=True) == attempt_answer(failed, ended()).attempt
    assert Attempt() == attempt_answer(completed, ended()).attempt


def test_the_first_pause_is_reported_and_no_fallback_or_later_pause():
    pause = outcome("Failed", reason=CAPACITY).record
    fallback = outcome("Failed", reason=CAPACITY, workload=ELSEWHERE).record

    assert isinstance(pause, CapacityWait)
    assert isinstance(fallback, CapacityWait)
    paused, tried = (attempt_answer(record, ended()) for record in (pause, fallback))
    assert notifies_owner(paused, ())
    assert notifies_owner(paused, (fallback,))
    assert not notifies_owner(paused, (pause, fallback))
    assert not notifies_owner(tried, ())


# A run's attempts: how long it waits for machines, and what each attempt is for.


DAY = 24 * 3600


def test_of_the_runs_only_one_that_leaves_no_model_is_reported():
    baseline = replace(BEGUN, arm="baseline")
    failed, repeated, completed = (
        outcome(status, begun=begun).record
        for status, begun in (("Failed", baseline), ("Failed", BEGUN), ("Completed", baseline))
    )

    assert [True, False, False] == [
        notifies_owner(attempt_answer(record, ended()), ())
        for record in (failed, repeated, completed)
    ]


@pytest.mark.parametrize(
    ("arm", "finished", "days", "is_open"),
    [
        (None, True, 0, True),
        ("baseline", True, 20, False),
        ("baseline", False, 11.9, False),
        ("baseline", False, 12, True),  # a second pass after it no longer reads two weeks back
        ("compile", False, 1, True),  # its rerun
    ],
)
def test_a_run_is_open_while_a_pass_may_have_to_look_at_it(arm, finished, days, is_open):
    run, day = naming.trial_id(1000 * NOW), 86_400
    runs = [
        ProductionRun(
            run, JOB, arm, NOW, NOW, {"finished": finished}, counts=True, why="flag",
            status="Completed" if finished else "Failed", at=round(NOW + days * day),
        )
        for arm in [arm] if arm
    ]  # fmt: skip
    past = WorkloadHistory(begun=(replace(BEGUN, run=run, at=NOW),), runs=tuple(runs))
    old, later = (naming.trial_id(1000 * (NOW + n * RUN_SECONDS + 1)) for n in (-1, 1))

    assert (run,) * is_open == runs_in_progress(past, [])
    assert (old, *(run,) * is_open) == runs_in_progress(past, [old])
    assert (later,) == runs_in_progress(past, [old, later])
    assert () == runs_in_progress(WorkloadHistory(), [])


def waited(seconds, spent=0.0):
    return CapacityWait(0, "r", 0, "j", "compile", None, spent, seconds, None)


def waits(most, *fallbacks, spent=0.0):
    """Every wait until the run gives up."""
    entries, expected = [], []
    while (wait := next_wait(entries, fallbacks, most)) is not None:
        expected.append(wait)
        entries.append(waited(wait.seconds, spent))
        assert len(entries) < 1000
    return expected


@pytest.mark.parametrize(
    ("hours", "fallbacks", "attempts", "longest"),
    [(300, 0, 302, 3600), (672, 0, 487, 4998), (672, 1, 477, 10_338), (672, 3, 459, 22_194)],
)
def test_pauses_of_weeks_are_so_long_that_500_attempts_are_enough(
    hours, fallbacks, attempts, longest
):
    made = waits(hours * 3600, *"abc"[:fallbacks])

    assert (attempts, longest) == (len(made), max(wait.seconds for wait in made))


@pytest.mark.parametrize(
    ("per_week", "hours", "expected"), [(3, None, 24), (14, None, 12), (14, 2, 2), (3, 100, 100)]
)
def test_the_bound_is_the_teams_else_the_next_run_at_most_a_day(per_week, hours, expected):
    workload = change(SOUND, schedule__runs_per_week=per_week, schedule__max_wait_hours=hours)

    assert pytest.approx(expected * 3600) == most_wait_seconds(workload)


def test_hours_that_an_attempt_itself_waited_count():
    assert 1 == len(waits(DAY, spent=DAY))


def before(attempt, instance_type=None):
    return CapacityWait(0, "r", attempt, "j", "compile", None, 0.0, 300, instance_type)


@pytest.mark.parametrize(
    ("number", "waits", "expected"),
    [
        (1, [], Attempt(1, rerun=True)),
        (1, [before(0)], Attempt(1)),
        (1, [before(0, "ml.p4d.24xlarge")], Attempt(1, instance_type="ml.p4d.24xlarge")),
        (2, [before(0, "ml.p4d.24xlarge"), before(1)], Attempt(2)),
        (2, [before(0)], Attempt(2, rerun=True)),
        (2, [before(1)], Attempt(2, rerun=True)),
    ],
    ids=[
        "after a failure", "after a wait", "on another type", "back on the own type",
        "waited, then failed", "failed, then waited",
    ],
)  # fmt: skip
def test_an_attempt_waits_for_capacity_or_repeats_a_run(number, waits, expected):
    assert expected == attempt_of(number, waits)


@pytest.mark.parametrize(
    ("job", "number"),
    [("cg-a-p2-r1-0abc-p3-r0", 3), ("cg-a-0abc-p0", 0), ("cg-a-0abc-p12-r9", 12), ("nightly", 0)],
)
def test_a_jobs_name_says_which_attempt_it_was(job, number):
    assert number == attempt_number(job)


CHOSEN = BegunRun(0, "r", "e", "compile", "flag", 17, 1, "spec", "source")


@pytest.mark.parametrize(
    ("attempt", "arm", "why"),
    [
        (Attempt(0), "compile", "flag"),
        (Attempt(1, rerun=True), "baseline", "rerun"),
        (Attempt(1, instance_type="ml.a"), "baseline", "fallback"),
    ],
)
def test_an_attempt_trains_what_was_chosen_or_the_baseline_and_says_why(attempt, arm, why):
    assert (arm, why) == (attempt.arm(CHOSEN), attempt.why(CHOSEN))


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ({}, ("", "", 300)),
        ({"error": None, "cause": None, "wait_seconds": "9"}, ("", "", 300)),
        ({"error": "E", "cause": "why", "wait_seconds": 9}, ("E", "why", 9)),
        ({"wait_seconds": True}, ("", "", 300)),
        ({"wait_seconds": 2**65}, ("", "", 300)),
    ],
)
def test_the_end_of_an_attempt_is_read_from_the_machines_event(told, read):
    attempt = {"number": 2, "rerun": True, "instance_type": None}
    event = {"workload": "w", "run": "r", "job": "j", "attempt": attempt, **told}
    end = AttemptEnd.from_event(event)

    assert ("w", "r", "j", Attempt(2, rerun=True)) == (end.workload, end.run, end.job, end.attempt)
    assert read == (end.error, end.cause, end.first_wait_seconds)


@pytest.mark.parametrize(("earlier", "waits_again"), [(498, True), (499, False)])
def test_the_five_hundredth_attempt_is_the_last(earlier, waits_again):
    entries = [waited(0)] * earlier

    assert waits_again == (next_wait(entries, (), 10**9) is not None)
