"""The outcome of an attempt and what follows, by how its job ended."""

from __future__ import annotations

import pytest

from compilegate.domain import naming
from compilegate.domain.production import job_evidence
from compilegate.domain.production.job_evidence import output_uri
from compilegate.domain.production.recorded_run import StillTrainsError
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import CanarySlot
from compilegate.usecases.production import record_run
from compilegate.usecases.records import read_document
from tests.archives import tarball
from tests.domain.workload_builder import SOUND
from tests.usecases.production.runs import (
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
    "reason",
    [
        "ClientError: Data download failed: no objects",
        "ClientError: NoSuchBucket: The specified bucket does not exist",
        "ClientError: Cannot pull the training image",
    ],
)
def test_what_could_not_be_done_as_asked_is_no_evidence_and_the_baseline_is_tried(promoted, reason):
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


def test_a_request_that_was_refused_fails_the_baseline_and_reruns_the_candidate(promoted):
    answer = promoted.record("SageMaker.AmazonSageMakerException", "AccessDenied: no")

    assert "rerun" == answer["next"]
    (run,) = promoted.runs()
    assert (False, "NotStarted") == (run.counts, run.status)
    assert "a role lacks a permission" in run.reason
    assert "failed" == promoted.record("SageMaker.AmazonSageMakerException", "AccessDenied")["next"]


def test_a_twin_of_a_job_that_was_asked_for_again_is_stopped(promoted):
    request = promoted.build()
    duplicate, job = (f"{request['TrainingJobName']}-r{retry}" for retry in (0, 1))
    promoted.describe(job, "Completed", output=summary_tar(), request=request)
    promoted.services.jobs.add(duplicate, "InProgress", 0.0)
    promoted.record(job=job)

    assert "Stopped" == promoted.services.jobs.descriptions[duplicate]["TrainingJobStatus"]
    assert "Completed" == promoted.services.jobs.descriptions[job]["TrainingJobStatus"]


def test_a_run_in_a_trials_place_carries_it_and_its_rerun_does_not(production, monkeypatch):
    heard = []
    monkeypatch.setattr(
        record_run, "close_after_run", lambda name, run, **more: heard.append((name, run, more))
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

    monkeypatch.setattr(record_run, "close_after_run", dies_once)
    promoted.ends("Completed", output=summary_tar())
    with pytest.raises(OSError, match="time is up"):
        promoted.record()

    assert "watch" == promoted.record()["next"]
    assert 1 == len(promoted.runs())
    assert [promoted.runs()[0]] * 2 == heard


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"finished": False, "metrics": {}, "reason": "loss is NaN"}, (False, None)),
        ({"compiler": {"requested": "torch_compile", "applied": False}}, (True, False)),
    ],
    ids=["diverged", "compiler not applied"],
)
def test_a_candidate_that_completed_badly_is_evidence_and_is_repeated(promoted, changes, shown):
    promoted.ends("Completed", output=summary_tar(**changes))

    assert "rerun" == promoted.record()["next"]
    (run,) = promoted.runs()
    assert (*shown, True) == (
        run.finished, run.result["applied"] if run.finished else None, run.counts,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (None, "no evidence"),
        (b"no archive", "cannot be read"),
        (b"", "cannot be read"),
        (summary_tar(metrics={"other": 1.0}), "eval_accuracy"),
    ],
    ids=["nothing", "garbage", "empty", "another metric"],
)
def test_a_job_without_readable_evidence_is_watched_but_does_not_count(promoted, output, words):
    promoted.ends("Completed", output=output)

    assert "watch" == promoted.record()["next"]
    (run,) = promoted.runs()
    assert (False, {}) == (run.counts, run.result)
    assert words in run.reason


BROKEN = {
    "a figure that is none": {"metrics": {"eval_accuracy": float("nan")}},
    "a figure without end": {"metrics": {"eval_accuracy": float("inf")}},
    "a figure as text": {"metrics": {"eval_accuracy": "0.9"}},
    "metrics as a list": {"metrics": [1]},
    "metrics as text": {"metrics": "eval_accuracy"},
    "a time as text": {"wall_seconds": "abc"},
    "a time below zero": {"wall_seconds": -1},
    "a seed as text": {"seed": "x"},
    "the compiler as text": {"compiler": "torch_compile"},
    "the fingerprint as text": {"fingerprint": "q"},
    "an unlikely clock": {"wall_seconds": 1e-300},
    "more than the ledger takes": {"fingerprint": {f"gpu{n}": "g" * 4000 for n in range(50)}},
}


@pytest.mark.parametrize("changed", BROKEN.values(), ids=BROKEN)
def test_a_run_that_the_judge_could_not_read_is_recorded_without_being_evidence(changed):
    production = Production()
    production.promote()
    production.begin()
    production.ends("Completed", output=summary_tar(**changed))

    answer = production.record()

    assert "watch" == answer["next"]
    (run,) = production.runs()
    assert (False, {}) == (run.counts, run.result)
    assert run.reason.startswith("its evidence cannot be read: ")
    (key,) = changed
    named = {"metrics": "metric", "fingerprint": ""}.get(key, key)
    assert named in run.reason


def test_a_summary_nested_too_deeply_is_no_evidence_either():
    production = Production()
    production.begin()
    body = b'{"schema": 1, "finished": true, "fingerprint": ' + b'{"a":' * 100_000
    production.ends("Completed", output=tarball({"evidence/summary.json": body}))

    production.record()

    assert [False] == [run.counts for run in production.runs()]


def test_an_output_too_large_to_be_read_is_a_run_without_evidence_and_says_why():
    production = Production()
    production.begin()
    production.ends("Completed", output=summary_tar())
    uri = output_uri(production.services.jobs.describe(production.job))
    production.services.store.sizes[uri] = 10**12

    answer = production.record()

    assert ("watch", False) == (answer["next"], answer["counts"])
    (run,) = production.runs()
    assert "1000000000000 bytes" in run.reason
    assert "/opt/ml/checkpoints" in run.reason


@pytest.mark.parametrize("error", [TypeError, KeyError, OverflowError, RecursionError])
def test_a_reader_that_stumbles_costs_the_evidence_and_not_the_run(monkeypatch, caplog, error):
    def stumbles(*_args, **_more):
        raise error("x")

    monkeypatch.setattr(job_evidence, "quality_run", stumbles)
    production = Production()
    production.begin()
    production.ends("Completed", output=summary_tar())

    assert "watch" == production.record()["next"]
    (run,) = production.runs()
    assert (False, {}) == (run.counts, run.result)
    assert "no evidence of" in caplog.text
