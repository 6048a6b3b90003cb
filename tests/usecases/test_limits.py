"""What a trial may cost and how long it may go on, held while it runs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from compilegate.domain.judging.design import LONGEST_SHADOW, looks
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.planning import rounds
from compilegate.domain.trial.jobs import STOP_SECONDS
from compilegate.usecases.planning import plan_trial
from tests.domain.workload_builder import SOUND, change
from tests.fakes import FixedQuotas
from tests.usecases.trial_builder import (
    EVENT,
    asks_full_runs,
    asks_speed,
    call_judge,
    evidence,
    first_round,
    load,
    outcome,
    own_stop,
    put_output,
    put_spec,
    speed_output,
)

HOUR = 3600


QUOTA_HOURS = rounds.QUOTA_WAIT_SECONDS / 3600


def spent(services: Any) -> float:
    return float(evidence(services)["plan"]["spent_usd"])


def rate(services: Any) -> float:
    return float(load(services, "plan")["arms"][0]["usd_per_hour"])


def reason(services: Any) -> str:
    return str(load(services, "decision")["reasons"][0]["code"])


def speed_job_that_took(services: Any, hours: float) -> dict[str, Any]:
    done = outcome("s0")
    put_output(services, done["job"], speed_output(range(1), speedup=1.5))
    services.jobs.add(done["job"], "Completed", 1000.0, 1000.0 + hours * HOUR)
    return done


def limits_of(services: Any, answer: dict[str, Any]) -> list[int]:
    requests = [json.loads(services.store.get(run["request_key"])) for run in answer["runs"]]
    return [request["StoppingCondition"]["MaxRuntimeInSeconds"] for request in requests]


@pytest.mark.parametrize(
    ("asked", "price", "jobs"),
    [
        (asks_full_runs("compile 17", usd=1000.0), None, 1),
        (asks_speed(usd=None, blocks=3), "usd_per_block", 1),
        (
            asks_full_runs("compile 1", "baseline 2", "compile 3", usd=None),
            "usd_per_quality_run",
            3,
        ),
    ],
)
def test_a_step_begins_where_its_price_and_time_to_stop_are_left_by_what_jobs_really_took(
    asked: Any, price: str | None, jobs: int, services: Any
) -> None:
    first_round(services)
    plan = load(services, "plan")
    usd = 3 * plan[price] if price else 1000.0
    room = (plan["max_trial_usd"] - usd) / rate(services) - jobs * STOP_SECONDS / HOUR
    within = call_judge(services, 1, [speed_job_that_took(services, room - 0.001)], asked)
    beyond = call_judge(services, 1, [speed_job_that_took(services, room + 0.001)], asked)

    assert ["continue", "inconclusive"] == [within["verdict"], beyond["verdict"]]
    assert "trial_over_budget" == reason(services)


def test_jobs_get_the_workloads_limit_where_the_budget_allows_it(services: Any) -> None:
    first_round(services)
    answer = call_judge(services, 1, [], asks_full_runs("compile 17", "baseline 17"))

    assert [12 * HOUR] * 2 == limits_of(services, answer)


def test_a_speed_job_gets_the_time_of_its_segments(services: Any) -> None:
    """Two arms, one block and what comes before it, an hour each at most."""
    assert [4 * HOUR] == limits_of(services, first_round(services))


@pytest.mark.parametrize("cap", [900.0, 1500.0, 2345.67, 5000.0])
def test_every_job_at_its_limit_stays_under_the_cap(cap: float, services: Any) -> None:
    """Rounds go on, each job up to its limit and the time it takes to stop it, until none fits."""
    put_spec(services, change(SOUND, policy__max_trial_usd=cap, schedule__run_hours=1.0))
    answer, number = first_round(services), 0
    while answer["verdict"] == "continue":
        ended = [outcome(run["run"], "Failed", reason="crash") for run in answer["runs"]]
        for job, limit in zip(ended, limits_of(services, answer), strict=True):
            services.jobs.add(job["job"], "Failed", 1.0, 1.0 + limit + STOP_SECONDS)
        number += 1
        seeds = range(10 * number, 10 * number + 3)
        pairs = [f"{arm} {seed}" for arm in ("compile", "baseline") for seed in seeds]
        answer = call_judge(services, number, ended, asks_full_runs(*pairs, usd=None))

    assert "trial_over_budget" == reason(services)
    assert 0.5 * cap < spent(services) <= cap


def cut_off(services: Any, run: str, hours: float) -> dict[str, Any]:
    """A job that reached this limit."""
    message = "the job reached its MaxRuntimeInSeconds (training.max_runtime_hours)"
    cut = outcome(run, "Stopped", reason=message, infrastructure=False, timed_out=True)
    services.jobs.add(cut["job"], "Stopped", 1000.0, 1000.0 + HOUR)
    limit = {"MaxRuntimeInSeconds": round(hours * HOUR)}
    services.jobs.descriptions[cut["job"]]["StoppingCondition"] = limit
    return cut


@pytest.mark.parametrize(
    ("hours", "verdict", "runs"), [(11.9, "inconclusive", [0, 0]), (12, "continue", [0, 1])]
)
def test_a_run_at_its_limit_is_a_failure_of_its_arm_unless_the_budget_cut_it_off(
    services: Any, hours: float, verdict: str, runs: list[int]
) -> None:
    first_round(services)
    cut = cut_off(services, "q1b17", hours)
    answer = call_judge(services, 2, [cut], asks_full_runs("compile 18"))

    assert verdict == answer["verdict"]
    assert verdict == "continue" or "trial_over_budget" == reason(services)
    assert runs == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_rounds_are_bounded_by_the_number_of_candidates(services: Any) -> None:
    first_round(services)
    most = rounds.max_rounds(1)
    last = call_judge(services, most - 1, [], asks_full_runs("compile 17"))
    beyond = call_judge(services, most, [], asks_full_runs("compile 17"))

    assert (20, ["continue", "inconclusive"]) == (most, [last["verdict"], beyond["verdict"]])
    assert "too_many_rounds" == reason(services)


def test_the_bound_leaves_room_for_every_look_and_for_repeated_rounds() -> None:
    """A round may be needed before the first look; any may be stopped and asked for again."""
    assert rounds.SPEED_ROUNDS >= SPEED_LOOKS[-1] + 2
    assert rounds.ROUNDS_PER_CANDIDATE >= 1 + len(looks(LONGEST_SHADOW)) + 3


def test_a_round_that_might_outlast_the_machine_is_not_begun(services: Any) -> None:
    first_round(services)
    needed = rounds.round_seconds(SOUND.training.max_runtime_hours, 1) + rounds.ENDING_SECONDS
    services.clock.seconds += rounds.TRIAL_SECONDS - needed
    within = call_judge(services, 1, [], asks_full_runs("compile 17"))
    services.clock.seconds += 1
    beyond = call_judge(services, 1, [], asks_full_runs("compile 17"))

    assert ["continue", "inconclusive"] == [within["verdict"], beyond["verdict"]]
    assert "trial_over_time" == reason(services)


@pytest.mark.parametrize(
    ("training", "a_round", "fits"),
    [
        ({"training__max_runtime_hours": 12.0}, 12.0, True),
        ({"training__max_runtime_hours": 49.0}, 49.0, True),
        ({"training__max_runtime_hours": 60.0}, 60.0, False),
        # It waits in every round.
        ({"training__spot": True, "training__max_runtime_hours": 12.0}, 24.0, True),
    ],
)
def test_the_plan_says_whether_the_longest_path_ends_in_time(
    training: Any, a_round: float, fits: bool, services: Any
) -> None:
    put_spec(services, change(SOUND, **training))
    plan_trial(EVENT, services=services)
    limits = load(services, "plan")["limits"]

    assert (20, fits) == (limits["max_rounds"], limits["fits"])
    assert limits["longest_hours"] == pytest.approx(20 * (a_round + 6 + QUOTA_HOURS) + 1, abs=0.01)


@pytest.mark.parametrize(("quota", "begins"), [(1000, True), (None, False), (1, False)])
def test_jobs_that_run_in_turn_need_the_time_of_all_of_them(
    quota: int | None, begins: bool, services: Any
) -> None:
    """Two days are enough for three jobs of 12 h side by side, not for one after the other."""
    count = SOUND.training.instance_count
    services = dataclasses.replace(
        services, quotas=FixedQuotas(otherwise=quota and max(quota, count))
    )
    first_round(services)
    services.clock.seconds += rounds.TRIAL_SECONDS - 48 * HOUR
    asked = asks_full_runs("compile 17", "baseline 17", "compile 18")
    answer = call_judge(services, 1, [], asked)

    assert ("continue" if begins else "inconclusive") == answer["verdict"]
    assert begins or "trial_over_time" == reason(services)


def test_every_round_at_its_limit_ends_before_the_machine_and_the_lock() -> None:
    """However long jobs may take: a round begins only where it ends in time."""
    for hours in (0.1, 12.0, 66.0, 28 * 24.0):
        elapsed, begun = 0, 0
        longest = rounds.round_seconds(hours, 1)
        while rounds.has_time(elapsed, longest) and begun < rounds.max_rounds(3):
            elapsed, begun = elapsed + longest, begun + 1
        assert begun > 0
        assert elapsed + rounds.ENDING_SECONDS <= rounds.TRIAL_SECONDS < rounds.LOCK_SECONDS


def test_a_spot_jobs_waiting_counts_where_a_round_might_outlast_the_machine(services: Any) -> None:
    spot = change(SOUND, training__spot=True, training__max_wait_hours=200.0)
    put_spec(services, spot)
    first_round(services)
    services.clock.seconds += rounds.TRIAL_SECONDS - 100 * HOUR

    assert "inconclusive" == call_judge(services, 1, [], asks_full_runs("compile 17"))["verdict"]
    assert "trial_over_time" == reason(services)


def second_try(services: Any, run: str, status: str = "InProgress", **times: float) -> Any:
    """The outcome of a run's second try; the first one's answer was lost, and its job goes on."""
    first = outcome(run, "Failed", reason="the quota is used up", infrastructure=True)
    services.jobs.add(first["job"], status, **times)
    return {**first, "job": first["job"].replace("-r0", "-r1")}


def test_a_job_without_a_waiting_execution_is_stopped_and_paid_for_as_it_is_billed(
    services: Any,
) -> None:
    first_round(services)
    waited_for = second_try(services, "q1b17", started=float(services.clock.seconds))
    job = waited_for["job"].replace("-r1", "-r0")
    services.clock.seconds += HOUR
    call_judge(services, 2, [waited_for], asks_full_runs("compile 17"))

    assert "Stopped" == services.jobs.describe(job)["TrainingJobStatus"]
    arm = load(services, "plan")["arms"][1]["usd_per_hour"]
    assert spent(services) == pytest.approx(arm * (HOUR + STOP_SECONDS) / HOUR)
    services.jobs.descriptions[job]["BillableTimeInSeconds"] = 36
    call_judge(services, 3, [], asks_full_runs("compile 18"))
    assert spent(services) == pytest.approx(rate(services) / 100)


def test_the_cap_holds_for_jobs_without_a_waiting_execution(services: Any) -> None:
    first_round(services)
    hours = load(services, "plan")["max_trial_usd"] / rate(services)
    ended = second_try(services, "s0", "Completed", started=0.0, ended=hours * HOUR)

    assert "inconclusive" == call_judge(services, 1, [ended], asks_speed())["verdict"]


def test_a_job_whose_end_was_reported_and_that_still_trains_is_stopped(services: Any) -> None:
    """The machine gave up on an answer that it could not read."""
    first_round(services)
    reported = outcome("q1b17", "Failed", reason="no answer", infrastructure=True)
    services.jobs.add(reported["job"], "InProgress", started=float(services.clock.seconds))
    call_judge(services, 2, [reported], asks_full_runs("compile 17"))

    assert "Stopped" == services.jobs.describe(reported["job"])["TrainingJobStatus"]


def test_jobs_of_the_round_just_asked_for_are_left_alone(services: Any) -> None:
    """A call that is repeated late must not stop what the first one's answer has started."""
    first_round(services)
    job = outcome("s1")["job"]
    services.jobs.add(job, "InProgress", started=0.0)
    call_judge(services, 1, [own_stop(services, "s0")], asks_speed())

    assert "InProgress" == services.jobs.describe(job)["TrainingJobStatus"]
    assert 0 == spent(services)


def test_what_a_stopped_job_cost_stays_on_the_account(services: Any) -> None:
    first_round(services)
    stopped = own_stop(services, "q1a17")
    services.jobs.add(stopped["job"], "Stopped", 1000.0, 1000.0 + HOUR)
    call_judge(services, 2, [stopped], asks_full_runs("compile 17"))
    call_judge(services, 3, [], asks_full_runs("compile 18"))

    assert spent(services) == pytest.approx(rate(services))
