"""What a trial may cost and how long it may go on, held while it runs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.judging.design import LONGEST_SHADOW, looks
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.planning import rounds
from compilegate.domain.request.build import JobSite
from compilegate.domain.trial.jobs import STOP_SECONDS
from compilegate.ports import Settings
from compilegate.usecases.job_requests import job_site
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import (
    asks_full_runs,
    asks_speed,
    call_judge,
    ended,
    evidence,
    first_round,
    load,
    outcome,
    put_spec,
)

HOUR = 3600


def spent(services: Any) -> float:
    return float(evidence(services)["plan"]["spent_usd"])


def rate(services: Any) -> float:
    return float(load(services, "plan")["arms"][0]["usd_per_hour"])


def reason(services: Any) -> str:
    return str(load(services, "decision")["reasons"][0]["code"])


def limits_of(services: Any, answer: dict[str, Any]) -> list[int]:
    requests = [json.loads(services.store.get(run["request_key"])) for run in answer["runs"]]
    return [request["StoppingCondition"]["MaxRuntimeInSeconds"] for request in requests]


def test_jobs_run_where_the_deployment_says_with_its_data() -> None:
    settings = Settings(
        "prod", "eu-west-1", "roles", tags={"team": "a"}, rules=JobRules(network_isolation=True),
        kms_key_arn="key", subnet_ids=("subnet",), security_group_ids=("group",),
    )  # fmt: skip
    own = {one.name: getattr(settings, one.name, "data") for one in fields(JobSite)}

    assert JobSite(**own) == job_site(settings, "data")


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


def test_the_bound_leaves_room_for_every_look_and_for_repeated_rounds() -> None:
    """A round may be needed before the first look; any may be stopped and asked for again."""
    assert rounds.SPEED_ROUNDS >= SPEED_LOOKS[-1] + 2
    assert rounds.ROUNDS_PER_CANDIDATE >= 1 + len(looks(LONGEST_SHADOW)) + 3


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


def test_prices_are_read_of_earlier_tries_and_of_jobs_that_left_no_run_before(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_round(services)
    lost = [second_try(services, f"q1b{seed}", started=0.0) for seed in (17, 18)]
    call_judge(services, 1, [ended(services, "s0", "baseline", "compile")], asks_speed())
    call_judge(services, 2, lost, asks_full_runs("compile 17"))
    read: list[str] = []  # none of the round that a late call asks for again
    monkeypatch.setattr(services.jobs, "describe_all", lambda names: read.extend(names) or {})
    again = second_try(services, "q2b17", started=0.0)
    call_judge(services, 3, [again, lost[0]], asks_full_runs("compile 18"))

    first, second = (lost[n]["job"].replace("-r1", "-r0") for n in (0, 1))
    assert sorted([again["job"].replace("-r1", "-r0"), first, first, second, lost[1]["job"]]) == (
        sorted(read)
    )
