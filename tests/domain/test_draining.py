"""What a drain stops, what it waits for, and when it is over."""

from __future__ import annotations

import pytest

from compilegate.domain.draining import (
    CLEAN_UP_SECONDS,
    DrainMark,
    HeldLease,
    RunningExecution,
    RunPhase,
    UnfinishedJob,
    Work,
    latest_mark,
    next_steps,
    phase_between_jobs,
)

TRIAL = RunningExecution("arn:evaluate:bert-1")
RUNS = {phase: RunningExecution(f"arn:train:{phase}", phase) for phase in RunPhase}


def test_trials_and_runs_without_a_machine_are_stopped_and_the_rest_is_waited_for() -> None:
    steps = next_steps(Work(trials=(TRIAL,), runs=tuple(RUNS.values())), stop_jobs=False)

    assert (TRIAL, RUNS[RunPhase.WAITING]) == steps.executions


def test_on_request_runs_that_train_are_stopped_as_well_but_a_record_is_never_cut_off() -> None:
    steps = next_steps(Work(runs=tuple(RUNS.values())), stop_jobs=True)

    assert {RunPhase.WAITING, RunPhase.TRAINING} == {one.phase for one in steps.executions}


@pytest.mark.parametrize(
    ("production", "stop_jobs", "stopped"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_a_job_that_outlived_its_execution(
    production: bool, stop_jobs: bool, stopped: bool
) -> None:
    job = UnfinishedJob("cg-lm-1-q1a0-r0", "arn:gone", production)

    assert ((job,) if stopped else ()) == next_steps(Work(jobs=(job,)), stop_jobs=stop_jobs).jobs


def test_a_job_of_a_running_execution_or_one_that_is_stopping_is_left_to_it() -> None:
    own = UnfinishedJob("cg-lm-1-q1a0-r0", TRIAL.arn, production=False)
    stopping = UnfinishedJob("cg-lm-1-q1b0-r0", "arn:gone", production=False, stopping=True)

    assert () == next_steps(Work(trials=(TRIAL,), jobs=(own, stopping)), stop_jobs=True).jobs


def test_a_lease_is_taken_back_only_when_the_deployment_has_had_time_to_do_it() -> None:
    held = HeldLease("a", TRIAL.arn)
    fresh = HeldLease("b", "arn:gone", ended_for=CLEAN_UP_SECONDS - 1)
    old = HeldLease("c", "arn:gone", ended_for=CLEAN_UP_SECONDS)

    assert (old,) == next_steps(Work(leases=(held, fresh, old)), stop_jobs=False).leases


@pytest.mark.parametrize(
    ("jobs", "without_capacity", "phase"),
    [
        ((), (), RunPhase.WAITING),
        (("p0",), ("p0",), RunPhase.WAITING),
        (("p0",), (), RunPhase.RECORDING),
        (("p0", "p1"), ("p0",), RunPhase.RECORDING),
    ],
)
def test_a_run_between_jobs(
    jobs: tuple[str, ...], without_capacity: tuple[str, ...], phase: RunPhase
) -> None:
    assert phase is phase_between_jobs(jobs, without_capacity)


def test_anything_in_progress_and_any_lease_is_not_idle() -> None:
    assert Work().idle
    for some in (
        Work(trials=(TRIAL,)),
        Work(runs=(RUNS[RunPhase.RECORDING],)),
        Work(jobs=(UnfinishedJob("j", "e", production=True),)),
        Work(leases=(HeldLease("w", "o"),)),
    ):
        assert not some.idle


def test_the_newest_mark_holds_and_an_unreadable_one_lets_nothing_start() -> None:
    on, off = DrainMark(1, True, 10, "ada", ("a",)), DrainMark(2, False, 20, "bo")

    assert latest_mark([{"kind": "sweep"}]) is None
    assert off == latest_mark([off.to_entry(), on.to_entry()])
    odd = {**off.to_entry(), "drained": "no"}
    assert DrainMark.from_entry(odd).drained
