"""How an attempt that the state machine no longer waits for is recorded, and what is stopped."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.failures import Ending, JobEnd
from compilegate.domain.flag import CompileBundle, Flag
from compilegate.domain.planning.rounds import attempt_seconds
from compilegate.domain.production.attempts import (
    NO_ATTEMPT,
    RUN_SECONDS,
    Attempt,
    AttemptEnd,
    JobEvidence,
    RunAnswer,
    Wait,
    attempt_number,
    attempt_of,
    longest_run_seconds,
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
    judged_result,
    may_go_on,
    notifies_owner,
    runs_in_progress,
    times,
)
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun, CanarySlot, CapacityWait, ProductionRun
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
NO_EVIDENCE = JobEvidence()
TIMES = {
    "TrainingStartTime": datetime.fromtimestamp(NOW - 90, UTC),
    "TrainingEndTime": datetime.fromtimestamp(NOW - 40, UTC),
}
ELSEWHERE = change(SOUND, training__fallback_instances=("ml.g5.2xlarge",))
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def ended(
    status: str | None = None, error: str = "", *, reason: str = "", workload: Workload = SOUND,
    begun: BegunRun = BEGUN, attempt: Attempt = NO_ATTEMPT, evidence: JobEvidence = NO_EVIDENCE,
    duplicates: tuple[str, ...] = (), **described: Any,
) -> EndedAttempt:  # fmt: skip
    """An attempt whose job is described so, None for one that never was."""
    job = {"TrainingJobStatus": status, "FailureReason": reason, **described} if status else {}
    reported = AttemptEnd(SOUND.name, "r", JOB, attempt, error, "because")
    jobs = RunJobs(TrainedJob(workload, "code"), load_facts(), SITE, request_limits())
    return EndedAttempt(reported, begun, jobs, job, NOW, evidence, duplicates=duplicates)


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
    assert status or "because" in recorded.record.reason


def test_a_job_in_progress_is_not_recorded():
    with pytest.raises(StillTrainsError, match=f"{JOB} is still training.* because"):
        outcome("InProgress", "SageMaker.AmazonSageMakerException")


def test_a_job_in_progress_after_its_time_is_stopped_with_its_twins_and_recorded():
    recorded = outcome("InProgress", "States.Timeout", duplicates=(DUPLICATE,))

    assert isinstance(recorded.record, ProductionRun)
    assert (False, (JOB, DUPLICATE)) == (recorded.record.counts, recorded.stop)


@pytest.mark.parametrize(("rerun", "arm"), [(False, "compile"), (True, "baseline")])
def test_without_capacity_the_same_arm_is_tried_on_the_next_type_that_the_job_may_run_on(
    monkeypatch, rerun, arm
):
    asked, refused = [], InvalidInputError("is too small")

    def request(_, begun, attempt):
        asked.append((begun, attempt))
        if attempt.instance_type == "ml.a":
            raise refused

    monkeypatch.setattr(RunJobs, "request", request)
    workload = change(SOUND, owner="nlp", training__fallback_instances=("ml.a", "ml.b"))
    of = ended(
        "Failed", reason=CAPACITY, workload=workload, attempt=Attempt(2, rerun=rerun), **TIMES
    )
    made = attempt_outcome(of)

    reason = made.record.reason
    assert "Unable to provision requested ML compute" in reason
    wait = CapacityWait(NOW, "r", 2, JOB, arm, reason, 50.0, 0, "ml.b")
    assert AttemptOutcome(wait, (), {"ml.a": refused}) == made
    assert [(BEGUN, Attempt(3, instance_type=name)) for name in ("ml.a", "ml.b")] == asked
    following = Attempt(3, rerun, "ml.b")
    assert attempt_answer(wait, of) == (
        RunAnswer("wait", "r", arm, "Waiting", reason, False, following, 0, "nlp")
    )
    pause = replace(of, waits=(wait,), reported=replace(of.reported, first_wait_seconds=7.0))
    record = attempt_outcome(pause).record
    assert (7, None) == (record.wait_seconds, record.next_instance_type)
    assert 7 == attempt_answer(record, of).wait_seconds


def test_a_run_that_may_not_wait_is_recorded_as_not_run():
    workload = change(SOUND, schedule__max_wait_hours=0.0)
    record = outcome("Failed", reason=CAPACITY, workload=workload).record

    assert (NOT_RUN, False) == (record.status, record.counts)
    assert record.reason.startswith("gave up waiting for machines: CapacityError: ")


RESULT = {"finished": True, "metric": 0.9, "compile_bundle": {"state": "stale"}}
SLOT, OWN, OTHER = CanarySlot("t", 1, 0), "ml.p4d.24xlarge", "ml.g5.2xlarge"
FULL = replace(
    BEGUN, overrides={"compiler": "torch_compile", "instance_type": OWN}, confirm=True,
    decision_id="d1", scheduled="today", tags={"team": "nlp"},
    flag=Flag(True, "permanent", compile_bundle=CompileBundle("x.json", "a" * 64)).to_json(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("attempt", "canary", "arm", "why", "machine"),
    [
        (Attempt(0), None, "compile", "flag", OWN),
        (Attempt(1), SLOT, "compile", "flag", OWN),
        (Attempt(2, rerun=True), SLOT, "baseline", "rerun", SOUND.training.instance_type),
        (Attempt(3, instance_type=OTHER), None, "baseline", "fallback", OTHER),
    ],
)
def test_a_record_says_what_the_run_had_chosen_only_of_an_attempt_that_trained_it(
    attempt, canary, arm, why, machine
):
    of = ended(
        "Completed", begun=replace(FULL, canary=canary, confirm=not canary), attempt=attempt,
        evidence=JobEvidence(RESULT), BillableTimeInSeconds=900,
        ModelArtifacts={"S3ModelArtifacts": "s3://m"}, **TIMES,
    )  # fmt: skip
    (record, stop), chosen = (attempt_outcome(of).record, attempt_outcome(of).stop), "flag" == why

    bundle = {"compile_bundle": {"sha256": "a" * 64, "state": "stale"}}
    assert ProductionRun(
        "r", JOB, arm, NOW - 90, NOW - 40, RESULT, why != "fallback", why,
        reason=f"trained on {OTHER} because the usual type had no capacity: no evidence"
        if why == "fallback" else None,
        confirm=chosen and not canary, canary=canary if chosen else None,
        decision_id="d1" if chosen else None, instance_type=machine,
        usd=load_facts().price(machine).usd_per_hour / 4,
        billable_seconds=900.0, at=NOW,
        details={
            "attempt": attempt.number, "ending": "completed", "execution": "e",
            "scheduled": "today", "spec_key": "s", "overrides": FULL.overrides if chosen else {},
            "model": "s3://m", **(bundle if chosen and not canary else {}),
        },
    ) == record  # fmt: skip
    assert () == stop


@pytest.mark.parametrize(
    ("result", "state"),
    [({"finished": False}, None), ({"finished": True}, "not_recorded"),
     ({"compile_bundle": None}, "not_recorded"),
     *[({"compile_bundle": {"state": state}}, state if state != "odd" else "not_recorded")
       for state in ("restored", "absent", "mismatch", "stale", "rank_failed", "pending", "odd")]],
)  # fmt: skip
def test_what_came_of_a_bundle_is_recorded_once_the_job_has_come_so_far(result, state):
    details = outcome("Completed", begun=FULL, evidence=JobEvidence(result)).record.details
    assert state == (details.get("compile_bundle") or {}).get("state")


def test_a_failed_fallback_says_why_it_failed():
    record = outcome("Failed", reason="broke", attempt=Attempt(1, instance_type=OTHER)).record
    assert ("broke", False, None, None, BEGUN.seed) == (
        record.reason, record.counts, record.usd, record.billable_seconds, record.result["seed"],
    )  # fmt: skip


UNFINISHED = {
    "seed": 5, "metric": None, "wall_seconds": None, "finished": False, "reason": "broke",
}  # fmt: skip
STOPPED = JobEnd(Ending.STOPPED, "Stopped", "broke", about_arm=False)
BROKEN, DONE = replace(STOPPED, ending=Ending.FAILED, about_arm=True), JobEnd(Ending.COMPLETED, "")


@pytest.mark.parametrize(
    ("end", "evidence", "judged"),
    [
        (DONE, JobEvidence(RESULT), (RESULT, True, None)),
        (DONE, JobEvidence({"reason": "nan"}), ({"reason": "nan"}, True, "nan")),
        (DONE, JobEvidence({"reason": "nan"}, "lost"), ({"reason": "nan"}, False, "lost")),
        (BROKEN, JobEvidence(RESULT), (UNFINISHED, True, "broke")),
        (STOPPED, JobEvidence(RESULT), (UNFINISHED, False, "broke")),
        (BROKEN, JobEvidence(RESULT, ended_examined=True),
         (UNFINISHED, False, "ended in the equivalence check, with its run done: broke")),
    ],
)  # fmt: skip
def test_a_job_that_did_not_complete_is_evidence_of_its_arm_where_it_may_be_its_doing(
    end, evidence, judged
):
    assert judged == judged_result(end, evidence, 5)


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ({}, (5, 5)), ({"CreationTime": 1}, (1, 1)),
        ({"CreationTime": 1, "TrainingStartTime": 2, "LastModifiedTime": 4}, (2, 4)),
        ({"TrainingStartTime": 2, "TrainingEndTime": 3, "LastModifiedTime": 4}, (2, 3)),
    ],
)  # fmt: skip
def test_a_jobs_times_are_as_near_as_its_description_says(moments, expected):
    described = {name: datetime.fromtimestamp(at, UTC) for name, at in moments.items()}
    assert expected == times({**described, "TrainingJobName": "j"}, otherwise=5)


@pytest.mark.parametrize(
    ("arm", "status", "result", "step"),
    [
        ("compile", "Completed", {"finished": True}, "review"),
        ("compile", "Completed", {}, "review"),
        ("compile", "Completed", {"applied": False}, "rerun"),
        ("baseline", "Completed", {"applied": False}, "review"),
        ("compile", "Completed", {"finished": False}, "rerun"),
        ("compile", "Failed", {}, "rerun"), ("baseline", "Failed", {}, "failed"),
        ("compile", NOT_RUN, {}, "failed"), ("compile", "Stopped", {}, "end"),
    ],
)  # fmt: skip
def test_what_follows_a_recorded_run_and_who_learns_of_it(arm, status, result, step):
    """A failed candidate is rerun on the baseline; what a person stopped stays stopped."""
    details = {"ending": "stopped"} if status == "Stopped" else {}
    run = ProductionRun(
        "r", JOB, arm, 1, 2, result, False, "flag", status=status, reason="why", details=details
    )
    of = ended(workload=change(SOUND, owner="nlp"), attempt=Attempt(2))

    following = Attempt(3, rerun=True) if step == "rerun" else Attempt(2)
    answer = attempt_answer(run, of)
    assert RunAnswer(step, "r", arm, status, "why", False, following, 0, "nlp") == answer
    assert attempt_answer(replace(run, counts=True), of).counts
    assert notifies_owner(answer, ()) is (step == "failed")


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
    old, later = (naming.trial_id(1000 * (NOW + n)) for n in (-RUN_SECONDS, RUN_SECONDS + 1))

    assert (run,) * is_open == runs_in_progress(past, [])
    assert (old, *(run,) * is_open) == runs_in_progress(past, [old])
    assert (later,) == runs_in_progress(past, [old, later])
    assert () == runs_in_progress(WorkloadHistory(), [])


def test_what_follows_the_last_attempt_says_whether_a_run_may_go_on():
    first = ProductionRun("r", DUPLICATE, "compile", 1, 2, {}, True, "flag", status="Failed", at=5)
    rerun = replace(first, job="cg-bert-docs-r-p1-r0", arm="baseline")

    assert [True, False] == [may_go_on([rerun, first], since=since) for since in (5, 6)]
    assert may_go_on([first], since=6)


def waited(seconds, spent=0.0):
    return CapacityWait(0, "r", 0, "j", "compile", None, spent, seconds, None)


def waits(most, *fallbacks):
    """Every wait until the run gives up."""
    entries, expected = [], []
    while (wait := next_wait(entries, fallbacks, most)) is not None:
        expected.append(wait)
        entries.append(waited(wait.seconds))
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
    job = attempt_seconds(workload.training.longest_job_hours)
    assert 2 * job + most_wait_seconds(workload) == longest_run_seconds(workload)


def test_hours_that_an_attempt_itself_waited_count():
    earlier = [waited(60, 40.0)]
    assert [Wait(600), None] == [next_wait(earlier, (), most) for most in (700, 699)]


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
