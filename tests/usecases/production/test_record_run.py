"""An attempt at a run: its request, how it ended, and what follows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import CompileBundle
from compilegate.domain.service_limits import problems
from compilegate.facts import read
from compilegate.usecases.production import record_run
from tests.archives import tarball
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import (
    CAPACITY,
    LIMIT,
    NAME,
    ON,
    OUT_OF_MEMORY,
    Production,
    summary_tar,
)
from tests.usecases.trial_builder import quality_output

P4, G5 = "ml.p4d.24xlarge", "ml.g5.24xlarge"


def begun(workload=SOUND, flag=ON):
    """A run that trains the candidate."""
    production = Production(workload)
    production.promote(flag)
    production.begin()
    return production


@pytest.fixture
def promoted():
    return begun()


def test_the_request_is_a_trials_full_run_and_says_whose_it_is():
    production = begun(change(SOUND, owner="ml-platform", tags={"cost-centre": "4711"}))
    request = production.build()
    assert [NAME] == production.services.roles.made
    sent = {key: json.loads(value) for key, value in request["HyperParameters"].items()}

    assert [] == list(problems(request, read("create_training_job")))
    assert ("compile", "torch_compile", 32, 1) == (
        sent["arm"], sent["compiler"], sent["batch_size"], sent["seed"],
    )  # fmt: skip
    assert f"cg-{NAME}-{production.run}-p0" == request["TrainingJobName"]
    assert {
        "compilegate:workload": NAME, "compilegate:run": production.run,
        "compilegate:stage": "production", "compilegate:arm": "compile",
        "compilegate:execution": production.execution, "compilegate:decision": "d1",
        "owner": "ml-platform", "cost-centre": "4711",
    } == {tag["Key"]: tag["Value"] for tag in request["Tags"]}  # fmt: skip


def test_a_run_that_was_never_begun_has_no_request():
    production = Production()
    production.run = "00000000"

    with pytest.raises(NotFoundError, match="never begun"):
        production.build()


@pytest.mark.parametrize("left", [{"examining": True}, {}])
def test_a_job_that_failed_in_the_check_lost_its_model_and_not_by_its_arm(promoted, left):
    promoted.ends("Failed", FailureReason=OUT_OF_MEMORY, output=quality_output(1, **left))

    assert "rerun" == promoted.record("States.TaskFailed", "{}")["next"]
    (run,) = promoted.runs()
    assert (not left, False) == (run.counts, run.finished)
    assert OUT_OF_MEMORY in run.reason


def test_a_twin_of_a_job_that_was_asked_for_again_is_stopped(promoted):
    request, jobs, stopped = promoted.build(), promoted.services.jobs, []
    ended, duplicate, job = (f"{request['TrainingJobName']}-r{retry}" for retry in range(3))
    promoted.describe(job, "Completed", output=summary_tar(), request=request)
    jobs.add(ended, "Failed", 0.0)
    jobs.add(duplicate, "InProgress", 0.0)
    jobs.stop = stopped.append
    promoted.record(job=job)

    assert [duplicate] == stopped


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

    assert "review" == promoted.record()["next"]
    assert [promoted.runs()[0]] * 2 == heard


# What a completed job left: what follows, whether it counts, and a word of the reason.
NESTED = b'{"schema": 1, "finished": true, "fingerprint": ' + b'{"a":' * 100_000
LEFT = {
    "as asked": (summary_tar(), "review", True, ""),
    "diverged": (
        summary_tar(finished=False, metrics={}, reason="loss is NaN"), "rerun", True, "NaN"),
    "compiler not applied": (
        summary_tar(compiler={"requested": "torch_compile", "applied": False}), "rerun", True, ""),
    "nothing": (None, "review", False, "no evidence"),
    "garbage": (b"no archive", "review", False, "cannot be read"),
    "nested too deeply": (tarball({"evidence/summary.json": NESTED}), "review", False, ""),
    **{
        f"{key}: {str(value)[:20]}": (summary_tar(**{key: value}), "review", False, words)
        for key, value, words in (
            ("metrics", {"other": 1.0}, "eval_accuracy"),
            ("metrics", {"eval_accuracy": float("nan")}, "metric"),
            ("metrics", [1], "metric"),
            ("wall_seconds", "abc", "wall_seconds"),
            ("seed", "x", "seed"),
            ("compiler", "torch_compile", "compiler"),
            ("fingerprint", {f"gpu{n}": "g" * 4000 for n in range(50)}, ""),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_a_completed_job_left_counts_where_the_judge_can_read_it(promoted, name):
    output, following, counts, words = LEFT[name]
    promoted.ends("Completed", output=output)

    assert following == promoted.record()["next"]
    (run,) = promoted.runs()
    assert (counts, counts) == (run.counts, bool(run.result))
    assert words in str(run.reason)
    assert ":" not in name or run.reason.startswith("its evidence cannot be read: ")


@pytest.mark.parametrize("target", [None, 0.0])
def test_a_run_keeps_its_evaluations_where_the_time_to_a_target_counts(promoted, target):
    (begun,) = promoted.services.ledger.history(NAME).begun
    spec = json.loads(promoted.services.store.get(begun.spec_key))
    spec["workload"]["quality"]["target"] = target
    promoted.services.store.put(begun.spec_key, json.dumps(spec).encode())
    seen = {"eval_accuracy": [[10, 0.8, 60.5]], "eval_loss": [[10, 0.2, 60.5]]}
    promoted.ends("Completed", output=summary_tar(evaluations=seen))
    promoted.record()

    expected = None if target is None else [[10, 0.8, 60.5]]
    assert expected == promoted.runs()[0].result.get("evaluations")


def test_a_run_without_a_quota_waits_which_is_reported_and_recorded_once():
    promoted = begun(change(SOUND, owner="ml-platform"))
    attempt, answers = promoted.attempt, [promoted.record(LIMIT, "x")]
    promoted.attempt = attempt
    promoted.services.clock.seconds += 100
    answers.append(promoted.record(LIMIT, "x"))
    later = [promoted.record(LIMIT, "x")["tell"] for _ in range(2)]

    assert answers[0] == answers[1]
    assert ("wait", 300) == (answers[0]["next"], answers[0]["wait_seconds"])
    assert "waits" in answers[0]["tell"]["message"]
    said = answers[0]["tell"]["notification"]["attributes"]
    assert ("ml-platform", "prod") == (said["owner"]["StringValue"], said["stage"]["StringValue"])
    assert [None, None] == later
    assert 3 == len(promoted.entries("run_waiting"))


def test_other_types_train_the_baseline_and_are_no_evidence(caplog):
    """The first is unknown: the job cannot run on it."""
    fallbacks = ("ml.unknown.large", P4, G5)
    production = begun(change(SOUND, training__fallback_instances=fallbacks))
    answer = production.fails(CAPACITY)
    assert (0, None) == (answer["wait_seconds"], answer["tell"])
    assert "ml.unknown.large" in caplog.text
    assert P4 == production.attempt["instance_type"]
    production.fails(CAPACITY)
    assert G5 == production.attempt["instance_type"]
    assert "review" == production.completes()["next"]

    (run,) = production.runs()
    assert ("baseline", "fallback", G5, False, None) == (
        run.arm, run.why, run.instance_type, run.counts, run.decision_id,
    )  # fmt: skip
    assert run.finished
    assert "no evidence" in run.reason
    assert [("compile", 0), ("baseline", 1)] == [
        (entry["arm"], entry["attempt"]) for entry in production.entries("run_waiting")
    ]


DIGEST = "a" * 64
NAMED = replace(ON, compile_bundle=CompileBundle(f"compile-cache/b/bundles/{DIGEST}.json", DIGEST))
VARIABLE = "COMPILEGATE_COMPILE_BUNDLE"


def test_the_job_of_the_candidate_gets_the_digest_and_the_folder_it_lies_in():
    request = begun(flag=NAMED).build()

    assert DIGEST == request["Environment"][VARIABLE]
    kept = request["Environment"]["COMPILEGATE_COMPILE_CACHE"]
    folder = request["CheckpointConfig"]["LocalPath"]
    assert f"{folder}/inductor" == kept  # so bundles/ lies beside it, in compile-cache/NAME/
    assert request["CheckpointConfig"]["S3Uri"].endswith(f"/compile-cache/{SOUND.name}/")


@pytest.mark.parametrize(
    ("bundle", "state"),
    [
        ({"state": "restored"}, "restored"), ({"state": "stale"}, "stale"),
        # What does not say it is no proof.
        (None, "not_recorded"), ("restored", "not_recorded"), ({"state": "<b>"}, "not_recorded"),
        ({"state": ["restored"]}, "not_recorded"),
    ],
)  # fmt: skip
def test_the_ledger_says_what_came_of_it_beside_a_result_that_counts_as_ever(bundle, state):
    made = begun(flag=NAMED)
    made.completes(compile_bundle=bundle)
    (run,) = made.runs()

    assert {"sha256": DIGEST, "state": state} == run.details["compile_bundle"]
    assert run.counts
