"""An execution that ended badly: what is known of its run is recorded, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.production.orphans import ExecutionEnd
from compilegate.usecases.operations.sweep import sweep
from compilegate.usecases.production.record_run import on_run_ended
from tests.fakes import MemoryTopic
from tests.usecases.production.runs import (
    NAME,
    Production,
    summary_tar,
)


@pytest.fixture
def production():
    production = Production()
    production.promote()
    production.begin()
    return production


def ended(production, status="FAILED", execution=None, **more):
    """Step Functions' event of the execution's end."""
    detail = {
        "executionArn": execution or production.execution, "status": status,
        "input": json.dumps({"workload": NAME}), **more,
    }  # fmt: skip
    return on_run_ended({"detail": detail}, services=production.services)


@pytest.mark.parametrize(
    ("job", "status", "answer", "left", "runs"),
    [
        ("Completed", "FAILED", "recorded", "Completed", [("Completed", True)]),
        # It goes on after a failure of the machine, because its model is needed.
        ("InProgress", "FAILED", "going_on", "InProgress", []),
        ("InProgress", "ABORTED", "recorded", "Stopped", [("Stopped", False)]),
        ("InProgress", "TIMED_OUT", "recorded", "Stopped", [("Stopped", False)]),
    ],
)
def test_a_job_is_recorded_once_or_goes_on(production, *, job, status, answer, left, runs):
    production.ends(job, output=summary_tar() if job == "Completed" else None)

    assert [production.job] == ended(production, status)[answer]
    described = production.services.jobs.describe(production.job)
    assert left == described["TrainingJobStatus"]
    assert runs == [(run.status, run.counts) for run in production.runs()]
    assert [] == ended(production, status)["recorded"]
    assert len(runs) == len(production.runs())


def test_a_twin_that_has_ended_is_recorded_beside_the_job_that_goes_on(production):
    production.ends("InProgress")
    twin = f"{production.job[:-1]}1"
    production.services.jobs.add(twin, "Stopped", 0.0, 60.0)

    assert {"recorded": [twin], "going_on": [production.job]} == ended(production)


def test_jobs_of_a_workload_whose_name_ends_like_the_runs_id_are_left_alone(production):
    """Their names begin like those of the run's own."""
    prefix = production.job.removesuffix("p0-r0")
    foreign = f"{prefix}0mabc123-p0-r0"
    production.services.jobs.add(foreign, "InProgress", 0.0)
    answer = ended(production, "ABORTED", error="X", cause="")

    assert "InProgress" == production.services.jobs.describe(foreign)["TrainingJobStatus"]
    assert foreign not in (*answer["recorded"], *answer["going_on"])
    assert foreign not in [run.job for run in production.runs()]


def lost(production):
    """Its event was lost: only the sweep finds it."""
    services = production.services
    services.store.put(f"workloads/{NAME}/specs/x.json", b"{}")
    detail = {"executionArn": production.execution, "input": json.dumps({"workload": NAME}),
              "status": "FAILED"}  # fmt: skip
    services.ends[production.execution] = ExecutionEnd("FAILED", services.clock.now(), detail)


def swept(production):
    return sweep({}, services=production.services, topic=MemoryTopic())["recorded_runs"]


@pytest.mark.parametrize("event", ["came while the job trained", "was lost"])
def test_a_run_that_its_event_did_not_record_is_recorded_by_the_sweep(production, event):
    production.ends("InProgress")
    if event != "was lost":
        ended(production)
    production.ends("Completed", output=summary_tar())
    lost(production)

    assert 0 == swept(production)
    production.services.clock.seconds += 3600
    assert 1 == swept(production)
    assert [("compile", True)] == [(run.arm, run.counts) for run in production.runs()]
    assert 0 == swept(production)


def test_a_run_that_never_had_a_job_says_why(production):
    ended(production, error="InvalidInputError", cause="the image is gone")

    (run,) = production.runs()
    assert ("NotRun", False) == (run.status, run.counts)
    assert "the image is gone" in run.reason


def test_a_duplicate_execution_has_nothing_of_its_own(production):
    production.ends("InProgress")

    assert {"recorded": [], "going_on": []} == ended(production, "ABORTED", execution="another")
    described = production.services.jobs.describe(production.job)
    assert "InProgress" == described["TrainingJobStatus"]
