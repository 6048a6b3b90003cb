"""What an attempt came to, and what follows: told by how its job ended."""

from __future__ import annotations

import pytest

from compilegate.domain import naming
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.runs import CanarySlot
from compilegate.facts import load_facts
from compilegate.usecases.production import record_run as record_attempt
from compilegate.usecases.production.record_run import StillTrainsError
from compilegate.usecases.trial.documents import read_document
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import (
    CAPACITY,
    NAME,
    OUT_OF_MEMORY,
    Production,
    summary_tar,
)

HOURS = 3600


@pytest.fixture
def production():
    return Production()


@pytest.fixture
def promoted(production):
    production.promote()
    production.begin()
    return production


def test_a_run_that_completed_is_kept_as_evidence_and_watched(promoted):
    answer = promoted.completes(metric=0.92)

    assert ("watch", None) == (answer["next"], answer["tell"])
    (run,) = promoted.runs()
    assert ("compile", "flag", "d1", True, True) == (
        run.arm, run.why, run.decision_id, run.counts, run.finished,
    )  # fmt: skip
    assert (0.92, True, 60.0) == (
        run.result["metric"], run.result["applied"], run.result["wall_seconds"],
    )  # fmt: skip
    assert "loss_curve" not in run.result
    assert (2 * HOURS, promoted.services.clock.now()) == (run.billable_seconds, run.started_at)
    assert pytest.approx(2 * load_facts().price("ml.g5.48xlarge").usd_per_hour) == run.usd
    assert ("ml.g5.48xlarge", 0) == (run.instance_type, run.details["attempt"])


def test_recording_it_again_adds_nothing_and_answers_the_same(promoted):
    promoted.ends("Completed", output=summary_tar())
    first = promoted.record()
    promoted.services.clock.seconds += 100
    # What the job left may be gone or have changed: what was written stands.
    promoted.services.store.objects.clear()
    promoted.register(SOUND)

    assert first == promoted.record()
    assert 1 == len(promoted.runs())


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ({"FailureReason": OUT_OF_MEMORY}, "out of memory"),
        ({"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}, "MaxRuntime"),
    ],
    ids=["crash", "time limit"],
)
def test_a_candidate_that_fails_is_evidence_and_is_run_again_on_the_baseline(
    promoted, ends, reason
):
    promoted.ends("Failed", **ends)
    answer = promoted.record("States.TaskFailed", "{}")

    assert ("rerun", {"number": 1, "rerun": True, "instance_type": None}) == (
        answer["next"], answer["attempt"],
    )  # fmt: skip
    (run,) = promoted.runs()
    assert (False, True, None) == (run.finished, run.counts, run.result["metric"])
    assert reason in run.reason

    assert "watch" == promoted.completes()["next"]
    _, again = promoted.runs()
    assert ("baseline", "rerun", True, None) == (
        again.arm, again.why, again.counts, again.decision_id,
    )  # fmt: skip


@pytest.mark.parametrize("reason", [None, OUT_OF_MEMORY, CAPACITY], ids=["ends", "fails", "waits"])
def test_every_step_says_whose_workload_it_is(production, reason):
    """What breaks later has nothing else to know it from."""
    owned = change(SOUND, owner="ml-platform")
    production.register(owned)

    assert "ml-platform" == production.begin()["owner"]
    answer = production.fails(reason) if reason else production.completes()
    assert "ml-platform" == answer["owner"]


def test_a_candidate_that_diverged_is_evidence_and_is_run_again(promoted):
    promoted.ends("Completed", output=summary_tar(finished=False, metrics={}, reason="loss is NaN"))

    assert "rerun" == promoted.record()["next"]
    (run,) = promoted.runs()
    assert (False, True, "loss is NaN") == (run.finished, run.counts, run.reason)


def test_a_treatment_that_was_not_applied_is_evidence_and_is_run_again(promoted):
    compiler = {"requested": "torch_compile", "applied": False}
    promoted.ends("Completed", output=summary_tar(compiler=compiler))

    assert "rerun" == promoted.record()["next"]
    (run,) = promoted.runs()
    assert (False, True, True) == (run.result["applied"], run.finished, run.counts)


def test_a_baseline_that_fails_is_told_and_not_run_again(production):
    production.begin()

    answer = production.fails(OUT_OF_MEMORY)

    assert "failed" == answer["next"]
    assert "failed" in answer["tell"]["subject"]
    assert OUT_OF_MEMORY in answer["tell"]["message"]
    assert [(False, True)] == [(run.finished, run.counts) for run in production.runs()]


def test_a_second_failure_in_one_night_is_told(promoted):
    promoted.fails(OUT_OF_MEMORY)

    assert "failed" == promoted.fails(OUT_OF_MEMORY)["next"]
    assert ["compile", "baseline"] == [run.arm for run in promoted.runs()]


def test_what_a_person_stopped_says_nothing_and_is_not_run_again(promoted):
    promoted.ends("Stopped")

    answer = promoted.record("States.TaskFailed", "{}")

    assert ("end", None) == (answer["next"], answer["tell"])
    assert [("Stopped", False)] == [(run.status, run.counts) for run in promoted.runs()]


@pytest.mark.parametrize(
    "reason",
    [
        "ClientError: Data download failed: no objects",
        "ClientError: NoSuchBucket: The specified bucket does not exist",
        "ClientError: Cannot pull the training image",
    ],
)
def test_what_could_not_be_done_as_asked_is_nobodys_evidence_and_the_baseline_is_tried(
    promoted, reason
):
    """The arm's own image may be what is missing; where it is not, the next try says so at once."""
    assert "rerun" == promoted.fails(reason)["next"]

    answer = promoted.fails(reason)

    assert "failed" == answer["next"]
    assert reason in answer["tell"]["message"]
    assert [("compile", False), ("baseline", False)] == [
        (run.arm, run.counts) for run in promoted.runs()
    ]


def test_a_job_that_still_trains_is_not_recorded_as_ended(promoted):
    """Its task failed, not the job: what is recorded now would hide how it really ends."""
    promoted.ends("InProgress")

    with pytest.raises(StillTrainsError, match="Service unavailable"):
        promoted.record("SageMaker.AmazonSageMakerException", "Service unavailable")

    assert [] == promoted.runs()
    assert "InProgress" == promoted.services.jobs.describe(promoted.job)["TrainingJobStatus"]
    assert "watch" == promoted.completes()["next"]


def test_one_that_still_trains_after_its_time_is_stopped_and_recorded(promoted):
    promoted.ends("InProgress")

    assert "rerun" == promoted.record("States.Timeout")["next"]
    assert (
        "Stopped"
        == promoted.services.jobs.describe(promoted.job.replace("-p1", "-p0"))["TrainingJobStatus"]
    )
    assert [(False, False)] == [(run.finished, run.counts) for run in promoted.runs()]


def test_a_crash_that_names_missing_capacity_is_a_crash(promoted):
    answer = promoted.fails(
        "AlgorithmError: ExecuteUserScriptError: botocore.exceptions.ClientError: An error "
        "occurred (ThrottlingException) when calling the GetParameter operation, exit code: 1"
    )

    assert "rerun" == answer["next"]
    assert [(False, True)] == [(run.finished, run.counts) for run in promoted.runs()]


def test_a_job_that_left_no_evidence_has_a_model_but_proves_nothing(promoted):
    promoted.ends("Completed")

    assert "watch" == promoted.record()["next"]
    (run,) = promoted.runs()
    assert (False, {}) == (run.counts, run.result)
    assert "no evidence" in run.reason


@pytest.mark.parametrize("body", [b"no archive", b""], ids=["garbage", "nothing"])
def test_evidence_that_cannot_be_read_says_so(promoted, body):
    promoted.ends("Completed", output=body)

    assert "watch" == promoted.record()["next"]
    (run,) = promoted.runs()
    assert not run.counts
    assert "cannot be read" in run.reason


def test_a_metric_that_the_job_did_not_record_is_no_evidence(promoted):
    promoted.ends("Completed", output=summary_tar(metrics={"other": 1.0}))
    promoted.record()

    (run,) = promoted.runs()
    assert not run.counts
    assert "eval_accuracy" in run.reason


def test_a_request_that_was_refused_fails_the_baseline_and_reruns_the_candidate(promoted):
    answer = promoted.record("SageMaker.AmazonSageMakerException", "AccessDenied: no")

    assert "rerun" == answer["next"]
    (run,) = promoted.runs()
    assert (False, "NotStarted") == (run.counts, run.status)
    assert "a role lacks a permission" in run.reason
    assert "failed" == promoted.record("SageMaker.AmazonSageMakerException", "AccessDenied")["next"]


def test_a_twin_of_a_job_that_was_asked_for_again_is_stopped(promoted):
    request = promoted.build()
    twin, job = (f"{request['TrainingJobName']}-r{retry}" for retry in (0, 1))
    promoted.describe(job, "Completed", output=summary_tar(), request=request)
    promoted.services.jobs.add(twin, "InProgress", 0.0)
    promoted.record(job=job)

    assert "Stopped" == promoted.services.jobs.descriptions[twin]["TrainingJobStatus"]
    assert "Completed" == promoted.services.jobs.descriptions[job]["TrainingJobStatus"]


def test_a_run_in_a_trials_place_carries_it_and_its_rerun_does_not(production, monkeypatch):
    heard = []
    monkeypatch.setattr(
        record_attempt, "close_after_run", lambda name, run, **more: heard.append((name, run, more))
    )
    production.begin()
    entry = production.entries("run_begun")[0]
    entry.update(
        arm="compile", overrides={"compiler": "torch_compile"}, why="canary",
        canary={"trial": "t", "round": 1, "position": 0}, seed=99,
    )  # fmt: skip
    assert "99" == production.build()["HyperParameters"]["seed"]
    production.fails(OUT_OF_MEMORY)
    production.completes()

    crashed, again = production.runs()
    assert (CanarySlot("t", 1, 0), None) == (crashed.canary, again.canary)
    assert [crashed, again] == [run for _, run, _ in heard]
    registered = read_document(SOUND.to_dict())
    assert TrainedJob(registered, naming.source_key(NAME, "s1")).digest == heard[0][2]["job"]


def test_a_step_that_dies_between_the_ledger_and_the_trial_is_made_good_by_repeating_it(
    promoted, monkeypatch
):
    heard = []

    def dies_once(_workload, run, **_more):
        heard.append(run)
        if len(heard) == 1:
            raise OSError("the function's time is up")

    monkeypatch.setattr(record_attempt, "close_after_run", dies_once)
    promoted.ends("Completed", output=summary_tar())
    with pytest.raises(OSError, match="time is up"):
        promoted.record()

    assert "watch" == promoted.record()["next"]
    assert 1 == len(promoted.runs())
    assert [promoted.runs()[0]] * 2 == heard
