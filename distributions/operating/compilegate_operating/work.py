"""Draining a deployment: what is stopped, what is waited for, and when it is over.

Trials are stopped, and so are production runs that have no machine. A run that trains continues to
its end, because its model is needed; its job can be stopped on request.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

# How long the deployment's own clean-up of a stopped trial may take before the drain does it.
CLEAN_UP_SECONDS = 60.0


class RunPhase(StrEnum):
    """What a production run is doing."""

    WAITING = "waiting"
    TRAINING = "training"
    RECORDING = "recording"


def phase_between_jobs(jobs: Collection[str], without_capacity: Collection[str]) -> RunPhase:
    """The phase of a run that trains nothing at the moment, from the names of its jobs so far.

    ``without_capacity`` are those that got no machine. A run with no other job has nothing to
    lose; one with a finished job is about to record it, or to train the baseline instead.
    """
    return RunPhase.RECORDING if set(jobs) - set(without_capacity) else RunPhase.WAITING


@dataclass(frozen=True)
class RunningExecution:
    """A trial or production run in progress; ``phase`` is None for a trial."""

    arn: str
    phase: RunPhase | None = None

    @property
    def name(self) -> str:
        """The execution's name."""
        return self.arn.rpartition(":")[2]


@dataclass(frozen=True)
class UnfinishedJob:
    """A training job that has not ended; ``execution`` is the ARN of the one that started it."""

    name: str
    execution: str
    production: bool
    stopping: bool = False


@dataclass(frozen=True)
class HeldLock:
    """A workload's lock; ``ended_for`` is for how many seconds its owner has been seen ended."""

    workload: str
    owner: str
    ended_for: float | None = None


@dataclass(frozen=True)
class Work:
    """Everything that a deployment has in progress at one moment."""

    trials: tuple[RunningExecution, ...] = ()
    runs: tuple[RunningExecution, ...] = ()
    jobs: tuple[UnfinishedJob, ...] = ()
    locks: tuple[HeldLock, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing is in progress and no lock is held."""
        return not (self.trials or self.runs or self.jobs or self.locks)


@dataclass(frozen=True)
class DrainSteps:
    """What to do next: executions and jobs to stop, locks to clean up after."""

    executions: tuple[RunningExecution, ...] = ()
    jobs: tuple[UnfinishedJob, ...] = ()
    locks: tuple[HeldLock, ...] = ()


def next_steps(work: Work, *, stop_jobs: bool) -> DrainSteps:
    """The next steps to end ``work``; with ``stop_jobs`` production's jobs are stopped.

    A job whose execution has ended is stopped where it belongs to a trial: without the rest of
    its trial its measurements are of no use. Production's may still bring a model.
    """
    running = {one.arn for one in (*work.trials, *work.runs)}
    stoppable = {RunPhase.WAITING, RunPhase.TRAINING} if stop_jobs else {RunPhase.WAITING}
    return DrainSteps(
        executions=(*work.trials, *(run for run in work.runs if run.phase in stoppable)),
        jobs=tuple(
            job
            for job in work.jobs
            if job.execution not in running
            and not job.stopping
            and (stop_jobs or not job.production)
        ),
        locks=tuple(
            lock
            for lock in work.locks
            if lock.ended_for is not None and lock.ended_for >= CLEAN_UP_SECONDS
        ),
    )
