"""A run has ended: what is said of it, and which of its round's jobs are stopped."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import Decision
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.reasons import Reason
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests.domain.workload_builder import COMPILE, SOUND
from tests.usecases.trial_builder import (
    EVENT,
    ScriptedJudge,
    asks_full_runs,
    asks_speed,
    call_judge,
    evidence,
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
    error: str = "States.TaskFailed",
    round_: Sequence[str] = ROUND,
) -> dict[str, Any]:
    ended = {"status": "Completed"} if cause is None else {"error": error, "cause": cause}
    runs = [asked(item) for item in round_]
    event = {**EVENT, "run": run, "job": job_of(run), "runs": runs, **ended}
    return on_job_ended(event, services=services, judge=judge or ScriptedJudge(says("continue")))


def still_running(services: Any) -> list[str]:
    running = services.jobs.unfinished("cg-", 0)
    return [run for run in ROUND if job_of(run) in running]


def goes_on_with(candidate: str, why: str = "quality_worse") -> Decision:
    """The judge asks for full runs of this candidate; of the other one it says why not."""
    asked = asks_full_runs(f"{candidate} 19", candidate=candidate)
    return given_up(asked, why) if candidate != "compile" else asked


def given_up(asked: Decision, why: str) -> Decision:
    reason = Reason(why, "said why", arm="compile")
    return dataclasses.replace(asked, reasons=(*asked.reasons, reason))


def fail(services: Any, run: str, judge: Any) -> dict[str, Any]:
    services.jobs.descriptions[job_of(run)]["TrainingJobStatus"] = "Failed"
    return end_job(services, run, judge, cause=CRASHED)


BACK_TO_SPEED = dataclasses.replace(
    given_up(asks_speed("compile-b48"), "quality_worse"), stage="speed", candidate="compile-b48"
)
LOOKS = {
    "undecided": (goes_on_with("compile"), [], ["q1a17", "q1b18"]),
    "promising": (says("promote"), [], ["q1a17", "q1b18"]),
    "inconclusive": (says("inconclusive"), [], ["q1a17", "q1b18"]),
    "hardly provable": (
        goes_on_with("compile-b48", "quality_inconclusive"), [], ["q1a17", "q1b18"],
    ),
    "candidate rejected": (goes_on_with("compile-b48"), [1], ["q1a17"]),
    "its guardrail rejected": (goes_on_with("compile-b48", "guardrail_worse"), [1], ["q1a17"]),
    "not equivalent": (goes_on_with("compile-b48", "not_equivalent"), [1], ["q1a17"]),
    "other gradients": (goes_on_with("compile-b48", "numerics_wrong"), [1], ["q1a17"]),
    "candidate rejected, back to speed": (BACK_TO_SPEED, [1], ["q1a17"]),
    "trial lost": (says("stay_off"), [0, 1, 2], []),
    "evidence invalid": (says("invalid"), [0, 1, 2], []),
}  # fmt: skip


@pytest.mark.parametrize(("decision", "rejected", "running"), LOOKS.values(), ids=LOOKS)
def test_the_look_stops_the_jobs_of_rejected_arms_and_no_others(
    decision: Decision, rejected: list[int], running: list[str], services: Any
) -> None:
    complete(services, "q1b17")
    answer = end_job(services, "q1b17", ScriptedJudge(decision))

    assert {**outcome("q1b17"), "rejected_arms": rejected} == answer
    assert running == still_running(services)


def test_a_candidates_crash_leaves_the_baselines_runs_to_the_next_candidate(services: Any) -> None:
    judge = ScriptedJudge(goes_on_with("compile-b48", "candidate_crashed"))
    answer = fail(services, "q1b17", judge)

    assert ("Failed", [1]) == (answer["status"], answer["rejected_arms"])
    assert ["q1a17"] == still_running(services)
    ((crashed,),) = (shown.arms[1].runs for shown in judge.shown)
    assert (job_of("q1b17"), False) == (crashed.job, crashed.finished)


@pytest.mark.parametrize(
    ("left", "metric"),
    [
        ({"examining": True}, 0.91),
        ({}, None),  # its process died at its exit
        ({"examining": True, "finished": False}, None),
        ({"examining": "True"}, None),
    ],
)
def test_a_job_that_failed_in_the_check_is_the_run_that_it_completed(
    services: Any, left: dict[str, Any], metric: float | None
) -> None:
    put_output(services, job_of("q1b17"), quality_output(17, **left))
    judge = ScriptedJudge(goes_on_with("compile"))
    fail(services, "q1b17", judge)

    ((run,),) = (shown.arms[1].runs for shown in judge.shown)
    assert (metric is not None, metric) == (run.finished, run.metric)


def test_what_the_cloud_could_not_run_stops_the_round_in_the_trials_own_name(
    services: Any,
) -> None:
    answer = end_job(services, "q1b17", cause="the quota is used up")
    services.jobs.descriptions[job_of("q1b17")]["TrainingJobStatus"] = "Failed"
    others = [end_job(services, run, cause=STOPPED) for run in ("q1a17", "q1b18")]

    assert (True, []) == (answer["infrastructure"], still_running(services))
    again = call_judge(services, 2, [answer, *others], goes_on_with("compile"))
    assert "continue" == again["verdict"]


def test_a_run_that_this_trial_stopped_stops_no_others_and_stays_its_own(services: Any) -> None:
    """Also where a later look thinks otherwise."""
    complete(services, "q1b17")
    judge, other = (ScriptedJudge(goes_on_with(arm)) for arm in ("compile-b48", "compile"))
    first = end_job(services, "q1b17", judge)
    again = end_job(services, "q1b18", judge, cause=STOPPED)

    assert first == end_job(services, "q1b17", judge)
    assert ("Stopped", [1]) == (again["status"], again["rejected_arms"])
    assert ["q1a17"] == still_running(services)
    second = end_job(services, "q1b18", other, cause=STOPPED)
    complete(services, "q1a17")
    third = end_job(services, "q1a17", other)
    answer = call_judge(services, 2, [first, third, second], goes_on_with("compile"))
    assert "continue" == answer["verdict"]


def test_a_run_that_somebody_else_stopped_ends_the_round(services: Any) -> None:
    services.jobs.stop(job_of("q1b17"))
    answer = end_job(services, "q1b17", cause=STOPPED)

    assert ("Stopped", []) == (answer["status"], answer["rejected_arms"])
    assert [] == still_running(services)


def test_the_look_leaves_no_trace_but_what_it_stopped(services: Any) -> None:
    before = dict(services.store.objects)
    complete(services, "q1b17")
    end_job(services, "q1b17", ScriptedJudge(says("stay_off")))

    changed = {key for key in services.store.objects if key not in before}
    assert {
        f"experiments/bert-docs/abcd1234/jobs/{job_of('q1b17')}/output/output.tar.gz",
        f"experiments/bert-docs/abcd1234/ended/{job_of('q1b17')}",
        *(f"experiments/bert-docs/abcd1234/stopped/{job_of(run)}.json" for run in ROUND[1:]),
    } == changed
    assert [0, 0, 0] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


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


def end_sibling(services: Any) -> None:
    complete(services, "q1a17")
    end_job(services, "q1a17", ScriptedJudge(goes_on_with("compile")))


def test_broken_evidence_of_a_sibling_ends_the_round_that_it_makes_invalid(services: Any) -> None:
    complete(services, "q1b17")
    end_sibling(services)
    put_output(services, job_of("q1a17"), quality_output(99))
    answer = end_job(services, "q1b17", ScriptedJudge(goes_on_with("compile")))

    assert [0, 1, 2] == answer["rejected_arms"]


@pytest.mark.parametrize(
    ("sibling", "counted"),
    [("crashed", [1, 1, 0]), ("completed", [1, 1, 0]), ("completed, and retried", [0, 1, 0])],
)
def test_a_run_is_judged_with_what_its_siblings_came_to(
    services: Any, sibling: str, counted: list[int]
) -> None:
    if sibling == "crashed":
        fail(services, "q1a17", ScriptedJudge(goes_on_with("compile")))
    elif sibling == "completed":
        end_sibling(services)
    else:  # nothing waited for the first one
        complete(services, "q1a17")
        services.jobs.add(job_of("q1a17").replace("-r0", "-r1"), "InProgress", 0.0)
    complete(services, "q1b17")
    judge = ScriptedJudge(goes_on_with("compile"))
    end_job(services, "q1b17", judge)

    (shown,) = judge.shown
    assert counted == [len(arm.runs) for arm in shown.arms]
    assert [job_of("q1b17")] == [run.job for run in shown.arms[1].runs]


def test_a_run_alone_in_its_round_is_left_to_the_round(services: Any) -> None:
    judge = ScriptedJudge(says("stay_off"))

    assert [] == end_job(services, "q1b17", judge, round_=["q1b17"])["rejected_arms"]
    assert [] == judge.shown


WAITING = ("q1b17", "q1a17", "q1b18", "q1a18")


def withdrawn(services: Any) -> list[str]:
    """Runs whose request no longer starts a job, written down as stopped by the trial."""
    store, items = services.store, []
    for run in WAITING:
        if "Withdrawn" in json.loads(store.get(asked(run)["request_key"])):
            assert store.has(naming.stop_key("bert-docs", EVENT["trial"], job_of(run)))
            items.append(run)
    return items


NO_MACHINE = json.dumps({"TrainingJobStatus": "Failed", "FailureReason": "CapacityError: none"})
NO_ROOM = "The account-level service limit 'x' is 1 Instances (ResourceLimitExceeded)"


@pytest.mark.parametrize(
    ("status", "cause", "verdict", "taken_back", "running"),
    [
        ("Failed", CRASHED, "stay_off", ["q1a18"], []),
        ("Completed", None, "continue", [], ["q1a17", "q1b18"]),
        ("Failed", NO_MACHINE, "continue", ["q1a18"], []),
        (None, NO_ROOM, "continue", [], ["q1a17", "q1b18"]),
    ],
    ids=["all is decided", "its arm is tested", "no machine", "no room for hours"],
)
def test_a_run_whose_turn_has_not_come_is_withdrawn_where_it_changes_nothing_any_more(
    services: Any, *, status: str | None, cause: str | None, verdict: str,
    taken_back: list[str], running: list[str],
) -> None:  # fmt: skip
    key = asked(WAITING[-1])["request_key"]
    services.store.put(key, json.dumps({"TrainingJobName": "n"}).encode())
    if status == "Completed":
        complete(services, "q1b17")
    elif status is None:
        del services.jobs.descriptions[job_of("q1b17")]
    else:
        services.jobs.descriptions[job_of("q1b17")]["TrainingJobStatus"] = status
    error = RESOURCE_LIMIT_ERROR if status is None else "States.TaskFailed"
    judge = ScriptedJudge(says(verdict))
    answer = end_job(services, "q1b17", judge, cause=cause, error=error, round_=WAITING)

    assert (cause in (NO_MACHINE, NO_ROOM)) is bool(answer.get("infrastructure"))
    assert (taken_back, running) == (withdrawn(services), still_running(services))
