"""What a drain stops, what it waits for, and when it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.records.ledger import DrainMark, read
from compilegate.domain.records.trials import TrialDecided
from compilegate.usecases.drain_mark import NEVER, latest_mark
from compilegate_operating.work import (
    DrainSteps,
    HeldLock,
    RunningExecution,
    RunPhase,
    UnfinishedJob,
    Work,
    next_steps,
)

TRIAL = RunningExecution("arn:evaluate:bert-1")
RUNS = {phase: RunningExecution(f"arn:train:{phase}", phase) for phase in RunPhase}


LEFT = UnfinishedJob("cg-lm-1-q1a0-r0", "arn:gone", production=False)
MODEL = replace(LEFT, production=True)
OWN, STOPPING = replace(LEFT, execution=TRIAL.arn), replace(LEFT, stopping=True)
HELD = HeldLock("a", TRIAL.arn)
FRESH = HeldLock("b", "arn:gone", ended_for=59.0)
OLD = HeldLock("c", "arn:gone", ended_for=60.0)
WAITING, TRAINING, RECORDING = (RUNS[phase] for phase in RunPhase)
OF_RUN = replace(MODEL, execution=RECORDING.arn)


@pytest.mark.parametrize(
    ("work", "stop_jobs", "steps"),
    [
        (Work((TRIAL,), tuple(RUNS.values())), False, DrainSteps((TRIAL, WAITING))),
        (Work((), tuple(RUNS.values())), True, DrainSteps((WAITING, TRAINING))),
        (Work(jobs=(LEFT, MODEL)), False, DrainSteps(jobs=(LEFT,))),
        (Work(jobs=(LEFT, MODEL)), True, DrainSteps(jobs=(LEFT, MODEL))),
        (Work((TRIAL,), (RECORDING,), (OWN, OF_RUN, STOPPING)), True, DrainSteps((TRIAL,))),
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


def test_a_deployment_is_idle_without_any_execution_job_or_lock():
    assert Work().idle
    busy = ({"trials": (TRIAL,)}, {"runs": (WAITING,)}, {"jobs": (LEFT,)}, {"locks": (HELD,)})
    assert not any(Work(**one).idle for one in busy)
    assert "bert-1" == TRIAL.name


@pytest.mark.parametrize("lost", ["drained", "version"])
def test_a_damaged_mark_lets_nothing_start_whichever_holds(lost):
    entry = DrainMark(1, True, 10, "ada").to_entry()
    del entry[lost]

    with pytest.raises(UnreadableRecordError, match="drain"):
        latest_mark([read(entry), DrainMark(2, False, 20, "bo")])


def test_what_else_is_damaged_says_nothing_of_the_mark():
    other = TrialDecided(1, "t1", "promote", "k").to_entry()
    del other["verdict"]

    assert (0, False, 0) == (NEVER.version, NEVER.drained, NEVER.at)
    assert NEVER == latest_mark([read(other)])
    assert 3 == latest_mark([DrainMark(n, False, n, "bo") for n in (2, 3, 1)]).version
