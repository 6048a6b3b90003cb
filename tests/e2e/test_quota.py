"""A trial within the account's quota: its jobs run in turn where it holds one."""

from __future__ import annotations

import itertools

import pytest

from compilegate.domain import naming
from compilegate.domain.planning import rounds
from compilegate_localcloud.emulator.sagemaker.quotas import NO_LIMIT
from distributions.localcloud.tests.failures import set_quotas

pytestmark = pytest.mark.e2e
KIND = "ml.g5.xlarge"


@pytest.fixture
def one_machine(app):
    set_quotas(app.cloud.state(), {KIND: 1})
    yield
    set_quotas(app.cloud.state(), {KIND: NO_LIMIT})


def assert_within_history(running):
    """The interpreter's own history is no longer than the planner counts, nor much shorter."""
    pages = running.app.client("stepfunctions").get_paginator("get_execution_history")
    taken = sum(len(page["events"]) for page in pages.paginate(executionArn=running.execution))
    jobs = list(running.record("evidence")["plan"]["usd_by_job"])
    numbers = {naming.job_run(running.workload, running.trial, job).round_number for job in jobs}
    counted = rounds.events(len(numbers), jobs)

    assert counted / 2 < taken < counted + rounds.RESERVE


@pytest.mark.usefixtures("one_machine")
def test_a_quota_of_one_job_is_enough_to_promote(trial, app):
    running = trial()

    assert "promote" == running.decision()["verdict"]
    assert {"-r0"} == {job[-3:] for job in running.jobs()}, "nothing had to be asked for twice"
    describe = app.client("sagemaker").describe_training_job
    jobs = [describe(TrainingJobName=running.job(job)) for job in running.jobs()]
    jobs.sort(key=lambda job: job["CreationTime"])
    assert all(a["TrainingEndTime"] <= b["CreationTime"] for a, b in itertools.pairwise(jobs))
    assert_within_history(running)
    assert [(KIND, 1, 1)] == [
        (need["instance_type"], need["one_job"], need["quota"])
        for need in running.record("plan")["quotas"]
    ]
