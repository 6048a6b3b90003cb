"""A run has ended: what is said of it, and which of its round's jobs are stopped."""

from __future__ import annotations

import dataclasses
import json
import logging
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded_document
from compilegate.domain.decision import Decision
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.reasons import Reason
from compilegate.domain.trial.jobs import EndedJob, OutputRuns
from compilegate.usecases.records import OpenTrial, Spec, Trial, to_json
from compilegate.usecases.trial.on_job_ended import ended_job, on_job_ended
from tests import fakes
from tests.domain.trial.plans import arm, plan
from tests.domain.workload_builder import COMPILE, SOUND
from tests.usecases.trial_builder import (
    EVENT,
    SPEC,
    TRIAL,
    ScriptedJudge,
    asks_full_runs,
    call_judge,
    first_round,
    outcome,
    put_output,
    put_spec,
    quality_output,
    says,
)

LARGER = dataclasses.replace(COMPILE, name="compile-b48", batch_size=48)
STOPPED = {"TrainingJobStatus": "Stopped"}
CRASHED = {"TrainingJobStatus": "Failed", "FailureReason": "AlgorithmError: NaN"}
ROUND = ("q1b17", "q1a17", "q1b18")


@pytest.fixture
def services(services: Any) -> Any:
    """A trial of two candidates in its first round of full runs, all of them running."""
    put_spec(services, dataclasses.replace(SOUND, candidates=(COMPILE, LARGER)))
    first_round(services)
    call_judge(services, 1, [], asks_full_runs("compile 17", "baseline 17", "compile 18"))
    for run in ROUND:
        services.jobs.add(job_of(run), "InProgress", float(services.clock.seconds))
    return services


def job_of(run: str) -> str:
    return str(outcome(run)["job"])


def complete(services: Any, run: str) -> None:
    services.jobs.descriptions[job_of(run)]["TrainingJobStatus"] = "Completed"
    put_output(services, job_of(run), quality_output(int(run[3:])))


def end_job(
    services: Any,
    run: str,
    judge: Any = None,
    *,
    cause: Any = None,
    error: str = "States.TaskFailed",
) -> dict[str, Any]:
    failed = {"error": error, "cause": json.dumps(cause)}
    ended = {"status": "Completed"} if cause is None else failed
    runs = [{"run": item} for item in ROUND]
    event = {**EVENT, "run": run, "job": job_of(run), "runs": runs, **ended}
    return on_job_ended(event, services=services, judge=judge or ScriptedJudge(says("continue")))


ENDS = naming.ends_prefix("bert-docs", TRIAL)
AT = {"at": fakes.FixedClock().now()}


def stop_key(run: str) -> str:
    return naming.stop_key("bert-docs", TRIAL, job_of(run))


def written(services: Any, before: dict[str, bytes]) -> dict[str, Any]:
    """The objects that were written since, by their keys."""
    objects = services.store.objects.items()
    return {key: json.loads(body) for key, body in objects if before.get(key) != body}


def still_running(services: Any) -> list[str]:
    running = services.jobs.unfinished("cg-", 0)
    return [run for run in ROUND if job_of(run) in running]


@pytest.mark.parametrize("ended_before", [False, True])
def test_a_candidates_crash_stops_its_other_runs_and_leaves_the_baselines_to_the_next_candidate(
    services: Any, *, ended_before: bool
) -> None:
    """What has ended may be shown in progress for a moment; it is not stopped."""
    asked = asks_full_runs("compile-b48 19", candidate="compile-b48")
    crash = Reason("candidate_crashed", "said why", arm="compile")
    judge = ScriptedJudge(dataclasses.replace(asked, reasons=(*asked.reasons, crash)))
    if ended_before:
        end_job(services, "q1b18", cause=CRASHED)
    before = dict(services.store.objects)
    services.jobs.descriptions[job_of("q1b17")]["TrainingJobStatus"] = "Failed"
    answer = end_job(services, "q1b17", judge, cause=CRASHED)

    assert ("Failed", [1]) == (answer["status"], answer["rejected_arms"])
    assert ["q1a17", *["q1b18"] * ended_before] == still_running(services)
    stopped = {} if ended_before else {stop_key("q1b18"): AT}
    assert {f"{ENDS}{job_of('q1b17')}": AT, **stopped} == written(services, before)
    crashed = judge.shown[-1].arms[1].runs[0]
    assert (job_of("q1b17"), False, "AlgorithmError: NaN") == (
        crashed.job, crashed.finished, crashed.record["reason"],
    )  # fmt: skip


FAILED = {"run": "q1b17", "job": job_of("q1b17"), "rejected_arms": [], "infrastructure": False,
          "timed_out": False}  # fmt: skip
FULL = {"TrainingJobStatus": "Failed", "FailureReason": "CapacityError: none"}


@pytest.mark.parametrize(
    ("own", "cause", "error", "answer", "goes_on"),
    [
        (False, STOPPED, "x", {"status": "Stopped", "reason": "the job was stopped"}, False),
        (True, STOPPED, "x", {"status": "Stopped", "reason": "the job was stopped"}, True),
        (True, FULL, "x",
         {"status": "Failed", "reason": "CapacityError: none", "infrastructure": True}, False),
        (False, FULL, RESOURCE_LIMIT_ERROR,
         {"status": "Failed", "reason": "CapacityError: none", "infrastructure": True,
          "waited": True}, True),
    ],
)  # fmt: skip
def test_a_run_that_was_lost_ends_the_round_unless_the_trial_stopped_it_or_the_quota_was_full(
    services: Any, *, own: bool, cause: Any, error: str, answer: dict[str, Any], goes_on: bool
) -> None:
    """The second run goes on, the third one has not started; neither needs the plan to stop."""
    if own:
        services.store.put(stop_key("q1b17"), b"{}")
    services.jobs.stop(job_of("q1b17"))
    del services.jobs.descriptions[job_of("q1b18")]
    del services.store.objects[naming.record_key("bert-docs", TRIAL, "plan")]
    before = dict(services.store.objects)

    assert {**FAILED, **answer} == end_job(services, "q1b17", cause=cause, error=error)
    assert ["q1a17"] * goes_on == still_running(services)
    assert ({} if goes_on else {
        stop_key("q1a17"): AT, stop_key("q1b18"): AT,
        naming.request_key("bert-docs", TRIAL, "q1b18"): {"Withdrawn": AT},
    }) == {key: value for key, value in written(services, before).items()
           if not key.startswith(ENDS)}  # fmt: skip


def test_whatever_goes_wrong_with_the_look_does_not_cost_the_run(
    services: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(document: Any) -> Decision:
        raise RuntimeError("the judge is broken")

    complete(services, "q1b17")
    with caplog.at_level(logging.ERROR):
        answer = end_job(services, "q1b17", broken)

    assert ("Completed", []) == (answer["status"], answer["rejected_arms"])
    assert "the judge is broken" in caplog.text
    assert ["q1a17", "q1b18"] == still_running(services)


def test_broken_evidence_of_a_sibling_ends_the_round_that_it_makes_invalid(services: Any) -> None:
    judge = ScriptedJudge(asks_full_runs("compile 19"))
    for run in ("q1b17", "q1a17"):
        complete(services, run)
    end_job(services, "q1a17", judge)
    put_output(services, job_of("q1a17"), quality_output(99))
    answer = end_job(services, "q1b17", judge)

    assert [0, 1, 2] == answer["rejected_arms"]


def outputs(error: Exception | None) -> Any:
    """They say how they were asked for, or raise the error."""

    def read(how: str, uri: str, *of: Any) -> Any:
        if error is not None:
            raise error
        return ((how, uri.removeprefix("s3://data/"), *of),)

    readers = ("segments", "full_run", "paired_runs")
    return SimpleNamespace(**{how: partial(read, how) for how in readers})


def read_end(
    run: str, status: str = "Completed", error: Exception | None = None, recorded: str = "",
    **fields: Any,
) -> EndedJob:  # fmt: skip
    """What is read of a job on the nodes of two candidates and a control, the last withdrawn."""
    services: Any = dataclasses.replace(fakes.services(), outputs=outputs(error))
    for block, request in enumerate((asks_for("far"), asks_for("a-control"), {"Withdrawn": AT})):
        key = naming.request_key("bert-docs", TRIAL, f"s1{'bcc'[block]}{block}")
        services.store.put(key, to_json(request))
    services.store.put(stop_key("q1b17"), b"{}")
    services.jobs.descriptions[job_of(run)] = {"TrainingJobStatus": status}
    arms = arm("baseline"), arm("far", instance_type="ml.p4d.24xlarge"), arm("a-control")
    opened = OpenTrial(
        Trial("bert-docs", TRIAL, SPEC), Spec(SOUND, ""), dataclasses.replace(plan(), arms=arms)
    )
    job = EndedJob(naming.parse_run(run), job_of(run), status, **fields)
    return ended_job(job, opened, services, recorded=[job_of(recorded)] if recorded else [])


def asks_for(arm: str) -> dict[str, Any]:
    return {"HyperParameters": {"arm_0": json.dumps(encoded_document({"name": arm}))}}


@pytest.mark.parametrize(
    ("run", "status", "fields", "left", "said"),
    [
        ("s1", "Completed", {}, "segments", {}),
        ("s1", "Failed", {}, None, {}),
        ("s1a0", "Failed", {}, None, {}),  # on the baseline's nodes
        ("s1b0", "Completed", {}, "segments", {}),
        ("s1b0", "Failed", {}, None, {"asked_arms": ("far",)}),
        ("s1c1", "Completed", {}, "segments", {"asked_arms": ("a-control",)}),
        ("s1c1", "Failed", {}, None, {"asked_arms": ("a-control",)}),
        ("s1c2", "Stopped", {}, None, {"asked_arms": ()}),
        ("q1b17", "Completed", {}, "full_run", {}),
        ("q1B17", "Completed", {}, "pairs", {}),
        ("q1b17", "Failed", {}, "full_run", {}),
        ("q1b17", "Failed", {"infrastructure": True}, None, {}),
        ("q1b17", "Stopped", {}, None, {"stopped_by_trial": True}),
        ("q1b18", "Stopped", {}, None, {}),
    ],
)
def test_of_a_job_is_read_what_it_was_asked_for_and_what_it_can_have_left(
    run: str, status: str, fields: dict[str, Any], left: str | None, said: dict[str, Any]
) -> None:
    key = naming.job_output_key("bert-docs", TRIAL, job_of(run))
    how = "paired_runs" if left == "pairs" else left
    of = () if left == "segments" else (SOUND.quality,)
    runs: dict[str, Any] = {left: ((how, key, job_of(run), *of),)} if left else {}

    expected = EndedJob(
        naming.parse_run(run), job_of(run), status,
        described={"TrainingJobStatus": status}, output=OutputRuns(**runs), **fields,
    )  # fmt: skip
    assert dataclasses.replace(expected, **said) == read_end(run, status, **fields)
    assert OutputRuns() == read_end(run, status, recorded=run, **fields).output


@pytest.mark.parametrize(
    ("run", "error", "why"),
    [
        ("q1b17", InvalidEvidenceError("no wall"), "no wall"),
        ("q1b17", ValueError("no number"), "its evidence is broken: no number"),
        ("s1c1", ConnectionError("cut off"), "its evidence is broken: cut off"),
        ("s1c1", NotFoundError("gone"), "gone"),
        ("s1b0", ConnectionError("cut off"), None),
        ("q1b17", NotFoundError("gone"), None),
    ],
)
def test_only_broken_evidence_and_whatever_happens_to_a_controls_is_no_error(
    run: str, error: Exception, why: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    if why is None:
        with pytest.raises(type(error)):
            read_end(run, error=error)
        return
    left = read_end(run, error=error).output
    assert (InvalidEvidenceError, why) == (type(left.unreadable), str(left.unreadable))
    assert OutputRuns(unreadable=left.unreadable) == left
    said = f"no evidence of {job_of(run)}" in caplog.text
    assert said is not isinstance(error, InvalidEvidenceError)
