"""What a drain stops, what it waits for, and when it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.records.ledger import DrainMark, read
from compilegate.usecases.drain_mark import NEVER, latest_mark
from compilegate_operating.work import (
    CLEAN_UP_SECONDS,
    DrainSteps,
    HeldLock,
    RunningExecution,
    RunPhase,
    UnfinishedJob,
    Work,
    next_steps,
    phase_between_jobs,
)

TRIAL = RunningExecution("arn:evaluate:bert-1")
RUNS = {phase: RunningExecution(f"arn:train:{phase}", phase) for phase in RunPhase}


LEFT = UnfinishedJob("cg-lm-1-q1a0-r0", "arn:gone", production=False)
MODEL = replace(LEFT, production=True)
OWN, STOPPING = replace(LEFT, execution=TRIAL.arn), replace(LEFT, stopping=True)
HELD = HeldLock("a", TRIAL.arn)
FRESH = HeldLock("b", "arn:gone", ended_for=CLEAN_UP_SECONDS - 1)
OLD = HeldLock("c", "arn:gone", ended_for=CLEAN_UP_SECONDS)
WAITING, TRAINING = RUNS[RunPhase.WAITING], RUNS[RunPhase.TRAINING]


@pytest.mark.parametrize(
    ("work", "stop_jobs", "steps"),
    [
        (Work((TRIAL,), tuple(RUNS.values())), False, DrainSteps((TRIAL, WAITING))),
        (Work((), tuple(RUNS.values())), True, DrainSteps((WAITING, TRAINING))),
        (Work(jobs=(LEFT, MODEL)), False, DrainSteps(jobs=(LEFT,))),
        (Work(jobs=(LEFT, MODEL)), True, DrainSteps(jobs=(LEFT, MODEL))),
        (Work((TRIAL,), jobs=(OWN, STOPPING)), True, DrainSteps((TRIAL,))),
        (Work(locks=(HELD, FRESH, OLD)), False, DrainSteps(locks=(OLD,))),
    ],
    ids=[
        "runs that train go on", "on request they stop, a record is completed",
        "jobs without an execution", "on request production's too",
        "jobs of a running execution or stopping", "locks after the deployment's own clean-up",
    ],
)  # fmt: skip
def test_what_a_drain_stops_and_cleans_up(work, stop_jobs, steps):
    assert steps == next_steps(work, stop_jobs=stop_jobs)


@pytest.mark.parametrize(
    ("jobs", "without_capacity", "phase"),
    [
        ((), (), RunPhase.WAITING),
        (("p0",), ("p0",), RunPhase.WAITING),
        (("p0",), (), RunPhase.RECORDING),
        (("p0", "p1"), ("p0",), RunPhase.RECORDING),
    ],
)
def test_a_run_without_a_job_waits_for_capacity_or_for_its_record(jobs, without_capacity, phase):
    assert phase is phase_between_jobs(jobs, without_capacity)


def test_anything_in_progress_and_any_lock_is_not_idle():
    assert Work().idle
    for some in (
        Work(trials=(TRIAL,)),
        Work(runs=(RUNS[RunPhase.RECORDING],)),
        Work(jobs=(UnfinishedJob("j", "e", production=True),)),
        Work(locks=(HeldLock("w", "o"),)),
    ):
        assert not some.idle


def test_the_newest_mark_holds_and_an_unreadable_one_lets_nothing_start():
    on, off = DrainMark(1, True, 10, "ada", ("a",)), DrainMark(2, False, 20, "bo")

    assert NEVER == latest_mark([read({"kind": "sweep"})])
    assert off == latest_mark([read(off.to_entry()), read(on.to_entry())])
    odd = read({**off.to_entry(), "drained": "no"})
    assert isinstance(odd, DrainMark)
    assert odd.drained


@pytest.mark.parametrize("lost", ["drained", "version"])
def test_a_damaged_mark_lets_nothing_start_whichever_holds(lost):
    entry = DrainMark(1, True, 10, "ada").to_entry()
    del entry[lost]

    with pytest.raises(UnreadableRecordError, match="drain"):
        latest_mark([read(entry), DrainMark(2, False, 20, "bo")])


def test_the_figures_that_these_tests_go_by():
    assert 60.0 == CLEAN_UP_SECONDS
