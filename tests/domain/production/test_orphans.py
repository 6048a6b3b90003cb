"""Which jobs and locks belong to no running execution."""

import pytest

from compilegate.domain import naming
from compilegate.domain.production.orphans import (
    FORGOTTEN,
    ExecutionEnd,
    TaggedJob,
    lacks_clean_up,
    of_deployment,
    orphans_by_workload,
)

NOW = 1_790_000_000
EXECUTION = "arn:aws:states:us-east-1:111122223333:execution:compilegate-prod-evaluate:w-0mabc123"
LONG_AGO = NOW - 3600


def job(stage="speed", created=LONG_AGO):
    return TaggedJob("cg-w-0mabc123-s0-r0", "w", EXECUTION, stage, created)


def orphaned_jobs(jobs, ends, **more):
    left = orphans_by_workload(jobs, [], ends, **more)
    return [one for orphans in left.values() for one in orphans.jobs]


def orphaned_locks(locks, ends, **more):
    left = orphans_by_workload([], locks, ends, **more)
    return [(workload, one) for workload, orphans in left.items() for one in orphans.locks]


def end(status="FAILED", at=LONG_AGO):
    return {EXECUTION: ExecutionEnd(status, at)}


@pytest.mark.parametrize("stage", ["speed", "quality", "production"])
@pytest.mark.parametrize("status", ["TIMED_OUT", "ABORTED", "SUCCEEDED"])
def test_a_job_of_an_execution_that_has_ended_is_an_orphan(stage, status):
    assert [job(stage)] == orphaned_jobs([job(stage)], end(status), now=NOW)


def test_a_job_that_a_running_execution_waits_for_is_none():
    assert [] == orphaned_jobs([job()], {}, now=NOW)


def test_a_teams_own_job_is_never_an_orphan():
    assert [] == orphaned_jobs([job(naming.TEAM_STAGE)], end("ABORTED"), now=NOW)


@pytest.mark.parametrize(("stage", "orphans"), [("quality", 1), ("production", 0)])
def test_a_production_job_goes_on_after_its_execution_failed(stage, orphans):
    assert orphans == len(orphaned_jobs([job(stage)], end("FAILED"), now=NOW))


@pytest.mark.parametrize(
    ("created", "ended"), [(LONG_AGO + 1, LONG_AGO - 9), (LONG_AGO - 9, LONG_AGO + 1)]
)
def test_a_young_job_or_a_recent_end_is_left_to_the_clean_up_by_event(created, ended):
    assert [] == orphaned_jobs([job(created=created)], end(at=ended), now=NOW)
    assert [job(created=created)] == orphaned_jobs(
        [job(created=created)], end(at=ended), now=NOW, grace_seconds=0
    )


def test_orphans_are_grouped_by_workload_and_are_by_workload_in_order_of_name():
    lock = ("v", EXECUTION)
    left = orphans_by_workload([job()], [("w", EXECUTION), lock], end(), now=NOW)

    assert [("v", 0, 1), ("w", 1, 1)] == [
        (workload, len(one.jobs), len(one.locks)) for workload, one in left.items()
    ]
    assert (EXECUTION,) == left["w"].locks


@pytest.mark.parametrize(
    ("execution", "status", "lacking"),
    [
        (EXECUTION, "ABORTED", True),
        (EXECUTION, "SUCCEEDED", False),
        (EXECUTION.replace("evaluate", "train"), "ABORTED", False),
    ],
)
def test_only_a_trial_that_ended_badly_lacks_its_clean_up(execution, status, lacking):
    assert lacking is lacks_clean_up(execution, ExecutionEnd(status, NOW), "prod")


def test_an_execution_that_step_functions_has_forgotten_has_ended():
    forgotten = {EXECUTION: FORGOTTEN}

    assert [job()] == orphaned_jobs([job()], forgotten, now=NOW)
    assert [("w", EXECUTION)] == orphaned_locks([("w", EXECUTION)], forgotten, now=NOW)


def test_a_lock_is_an_orphan_once_its_execution_has_been_over_for_an_hour():
    lock = ("w", EXECUTION)

    assert [lock] == orphaned_locks([lock], end("SUCCEEDED"), now=NOW)
    assert [] == orphaned_locks([lock], end(at=LONG_AGO + 1), now=NOW)
    assert [] == orphaned_locks([lock], {}, now=NOW)


@pytest.mark.parametrize(
    ("execution", "own"),
    [
        (EXECUTION, True),
        (EXECUTION.replace("evaluate", "train"), True),
        (EXECUTION.replace("-prod-", "-dev-"), False),
        (EXECUTION.replace("-prod-", "-prod-x-"), False),
        (EXECUTION.replace("evaluate:", "other:"), False),
        (EXECUTION.replace(":execution:", ":express:"), False),
        ("a-person", False),
    ],
)
def test_only_executions_of_the_stages_machines_count(execution, own):
    assert own is of_deployment(execution, "prod")


def test_orphans_of_jobs_and_locks_are_by_workload_in_order_of_name():
    other = EXECUTION[:-1] + "4"
    jobs = [
        TaggedJob(f"j{number}", "w", execution, "speed", LONG_AGO)
        for number, execution in enumerate((other, EXECUTION))
    ]
    ends = {one: ExecutionEnd("FAILED", LONG_AGO) for one in (EXECUTION, other)}
    locks = [("w", EXECUTION), ("a", EXECUTION)]
    left = orphans_by_workload(jobs, locks, ends, now=NOW)

    assert ["a", "w"] == list(left)
    assert {EXECUTION, other} == {one.execution for one in left["w"].jobs}
    assert ((EXECUTION,), (EXECUTION,)) == (left["w"].locks, left["a"].locks)
    alone = orphans_by_workload(jobs[:1], [], ends, now=NOW)
    assert ["w"] == list(alone)


def test_grace_is_for_jobs_and_locks_alike():
    ends = {EXECUTION: ExecutionEnd("FAILED", NOW - 10)}
    jobs, locks = [job(created=NOW - 10)], [("w", EXECUTION)]

    assert {} == orphans_by_workload(jobs, locks, ends, now=NOW)
    left = orphans_by_workload(jobs, locks, ends, now=NOW, grace_seconds=5)
    assert (1, 1) == (len(left["w"].jobs), len(left["w"].locks))
