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


def end(status="FAILED", at=LONG_AGO):
    return {EXECUTION: ExecutionEnd(status, at)}


ENDED = ("TIMED_OUT", "ABORTED", "SUCCEEDED")
FORGOTTEN_BY_STEP_FUNCTIONS = {EXECUTION: FORGOTTEN}


@pytest.mark.parametrize(
    ("stage", "created", "ends", "orphan"),
    [
        *(("speed", LONG_AGO, end(status), True) for status in ENDED),
        *(("quality", LONG_AGO, end(status), True) for status in (*ENDED, "FAILED")),
        *(("production", LONG_AGO, end(status), True) for status in ENDED),
        ("production", LONG_AGO, end("FAILED"), False),  # the job goes on
        (naming.TEAM_STAGE, LONG_AGO, end("ABORTED"), False),
        ("speed", LONG_AGO, {}, False),  # its execution runs
        ("speed", LONG_AGO, FORGOTTEN_BY_STEP_FUNCTIONS, True),
        # What is young or ended lately is left to the clean-up by event.
        ("speed", LONG_AGO + 1, end(at=LONG_AGO - 9), False),
        ("speed", LONG_AGO - 9, end(at=LONG_AGO + 1), False),
    ],
)
def test_a_job_is_an_orphan_an_hour_after_its_execution_has_ended(stage, created, ends, orphan):
    one = job(stage, created)

    assert [one] * orphan == orphaned_jobs([one], ends, now=NOW)


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


@pytest.mark.parametrize(
    ("execution", "own"),
    [
        (EXECUTION, True),
        (EXECUTION.replace("evaluate", "train"), True),
        (EXECUTION.replace("-prod-", "-dev-"), False),
        (EXECUTION.replace("-prod-", "-prod-x-"), False),
        (EXECUTION.replace(":execution:", ":express:"), False),
        ("a-person", False),
    ],
)
def test_only_executions_of_the_stages_machines_count(execution, own):
    assert own is of_deployment(execution, "prod")


def test_orphans_of_jobs_and_locks_are_by_workload_in_order_of_name():
    left = orphans_by_workload([job()], [(one, EXECUTION) for one in "wcba"], end(), now=NOW)

    assert ["a", "b", "c", "w"] == list(left)
    assert [0, 0, 0, 1] == [len(one.jobs) for one in left.values()]
    assert {(EXECUTION,)} == {one.locks for one in left.values()}


def test_grace_is_for_jobs_and_locks_alike():
    ends = {EXECUTION: ExecutionEnd("FAILED", NOW - 10)}
    jobs, locks = [job(created=NOW - 10)], [("w", EXECUTION)]

    assert {} == orphans_by_workload(jobs, locks, ends, now=NOW)
    left = orphans_by_workload(jobs, locks, ends, now=NOW, grace_seconds=5)
    assert (1, 1) == (len(left["w"].jobs), len(left["w"].locks))
