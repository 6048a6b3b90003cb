"""Trials within the account's quota: in turn where it holds one job, waiting where it is in use."""

from __future__ import annotations

import itertools

import pytest

from compilegate.domain import naming
from compilegate.domain.planning import rounds
from compilegate_localcloud.emulator.sagemaker.quotas import NO_LIMIT
from distributions.localcloud.tests.failures import set_quotas
from distributions.localcloud.tests.helpers import eventually

pytestmark = pytest.mark.e2e
KIND, OTHER = "ml.g5.xlarge", "ml.g5.2xlarge"
CHEAP = {"name": "cheap", "instance_type": OTHER}
HALF_PRICE = {"prices": {OTHER: 0.704, KIND: 1.408}}


@pytest.fixture
def quota(app):
    """Sets quotas of the account; afterwards there are none again."""
    yield lambda instances: set_quotas(app.cloud.state(), instances)
    set_quotas(app.cloud.state(), dict.fromkeys((KIND, OTHER), NO_LIMIT))


def described(running):
    describe = running.app.client("sagemaker").describe_training_job
    return [describe(TrainingJobName=running.job(job)) for job in running.jobs()]


def side_by_side(running, kind):
    """Pairs of jobs on a type of which the second was asked for before the first had ended."""
    jobs = sorted(
        (job for job in described(running) if job["ResourceConfig"]["InstanceType"] == kind),
        key=lambda job: job["CreationTime"],
    )
    return [
        (a["TrainingJobName"], b["TrainingJobName"])
        for a, b in itertools.combinations(jobs, 2)
        if b["CreationTime"] < a["TrainingEndTime"]
    ]


def full_runs(running):
    runs = [naming.job_run(running.workload, running.trial, running.job(j)) for j in running.jobs()]
    return [run for run in runs if not run.is_speed]


def assert_within_history(running):
    """The interpreter's own history is no longer than the planner counts, nor much shorter."""
    pages = running.app.client("stepfunctions").get_paginator("get_execution_history")
    taken = sum(len(page["events"]) for page in pages.paginate(executionArn=running.execution))
    jobs = list(running.record("evidence")["plan"]["usd_by_job"])
    numbers = {naming.job_run(running.workload, running.trial, job).round_number for job in jobs}
    counted = rounds.events(len(numbers), jobs)

    assert counted / 2 < taken < counted + rounds.RESERVE


def test_a_quota_of_one_job_is_enough_to_promote(trial, quota):
    quota({KIND: 1})
    running = trial()

    assert "promote" == running.decision()["verdict"]
    assert len(full_runs(running)) > 1
    assert [] == side_by_side(running, KIND)
    assert {"-r0"} == {job[-3:] for job in running.jobs()}, "nothing had to be asked for twice"
    assert_within_history(running)
    plan = running.record("plan")
    assert [(KIND, 1, 1)] == [
        (need["instance_type"], need["one_job"], need["quota"]) for need in plan["quotas"]
    ]


def test_a_lost_candidates_other_runs_do_not_start_when_their_turn_comes(trial, quota):
    quota({KIND: 1})
    running = trial(crash="compile")

    assert "stay_off" == running.decision()["verdict"]
    assert [0, 1] == sorted(run.arm_index for run in full_runs(running))


def test_a_quota_that_shrinks_after_planning_is_waited_for(trial, quota):
    quota({KIND: 64})
    running = trial(slow="baseline")
    key = naming.record_key(running.workload, running.trial, "plan")
    eventually(lambda: running.app.store.has(key), 30, "no plan was recorded")
    quota({KIND: 2})

    assert "promote" == running.decision()["verdict"]
    assert {"-r0"} < {job[-3:] for job in running.jobs()}, "something had to be asked for twice"
    assert [] == running.record("evidence")["plan"].get("lost_rounds", [])
    assert "Stopped" not in running.jobs().values()


def test_a_quota_that_holds_no_job_refuses_the_trial_before_any_spend(trial, quota):
    quota({KIND: 0})
    running = trial()
    decision = running.decision()

    assert "quota_too_low" == decision["reasons"][0]["code"]
    assert KIND in decision["reasons"][0]["message"]
    assert {} == running.jobs()
