"""A run has ended: what is said of it, and which of its round's jobs are stopped."""

from __future__ import annotations

import dataclasses
import json
import logging
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import Decision
from compilegate.domain.reasons import Reason
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests.domain.workload_builder import COMPILE, SOUND
from tests.usecases.trial_builder import (
    EVENT,
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
STOPPED = json.dumps({"TrainingJobStatus": "Stopped"})
CRASHED = json.dumps({"TrainingJobStatus": "Failed", "FailureReason": "AlgorithmError: NaN"})
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


def asked(run: str) -> dict[str, str]:
    """A run as JudgeArms asks for it."""
    return {
        "run": run,
        "request_key": naming.request_key("bert-docs", EVENT["trial"], run),
        "job_base": naming.job_base("bert-docs", EVENT["trial"], run),
    }


def complete(services: Any, run: str) -> None:
    services.jobs.descriptions[job_of(run)]["TrainingJobStatus"] = "Completed"
    put_output(services, job_of(run), quality_output(int(run[3:])))


def end_job(
    services: Any,
    run: str,
    judge: Any = None,
    *,
    cause: str | None = None,
) -> dict[str, Any]:
    failed = {"error": "States.TaskFailed", "cause": cause}
    ended = {"status": "Completed"} if cause is None else failed
    runs = [asked(item) for item in ROUND]
    event = {**EVENT, "run": run, "job": job_of(run), "runs": runs, **ended}
    return on_job_ended(event, services=services, judge=judge or ScriptedJudge(says("continue")))


def still_running(services: Any) -> list[str]:
    running = services.jobs.unfinished("cg-", 0)
    return [run for run in ROUND if job_of(run) in running]


def goes_on_with_the_other(why: str) -> Decision:
    """The judge asks for full runs of the second candidate; of the first it says why not."""
    asked = asks_full_runs("compile-b48 19", candidate="compile-b48")
    reason = Reason(why, "said why", arm="compile")
    return dataclasses.replace(asked, reasons=(*asked.reasons, reason))


def test_a_candidates_crash_leaves_the_baselines_runs_to_the_next_candidate(services: Any) -> None:
    judge = ScriptedJudge(goes_on_with_the_other("candidate_crashed"))
    services.jobs.descriptions[job_of("q1b17")]["TrainingJobStatus"] = "Failed"
    answer = end_job(services, "q1b17", judge, cause=CRASHED)

    assert ("Failed", [1]) == (answer["status"], answer["rejected_arms"])
    assert ["q1a17"] == still_running(services)
    ((crashed,),) = (shown.arms[1].runs for shown in judge.shown)
    assert (job_of("q1b17"), False) == (crashed.job, crashed.finished)


def test_a_run_that_somebody_else_stopped_ends_the_round(services: Any) -> None:
    services.jobs.stop(job_of("q1b17"))
    answer = end_job(services, "q1b17", cause=STOPPED)

    assert ("Stopped", []) == (answer["status"], answer["rejected_arms"])
    assert [] == still_running(services)


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
