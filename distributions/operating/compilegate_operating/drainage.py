"""Drains a deployment: nothing new starts, what is in progress ends. Releases a lock by hand.

The mark in the ledger is written first, so that a crash anywhere leaves a deployment that starts
nothing, and a repeated call continues from there. Flags are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from compilegate.domain import ledger_keys, naming
from compilegate.domain.failures import ACTIVE, STOPPING
from compilegate.domain.flag_change import Override
from compilegate.domain.ledger_keys import CLOCKS_APART_SECONDS
from compilegate.domain.production.orphans import ExecutionEnd
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.ledger import DrainMark, Unlocked
from compilegate.domain.workload.model import HOUR, MOST_HOURS
from compilegate.ports import JobListing, Schedules, Services
from compilegate.usecases.drain_mark import drain_mark, put_mark
from compilegate.usecases.started_jobs import jobs_of_run
from compilegate.usecases.trial.abort_trial import abort_trial, clean_up_after
from compilegate_operating.work import (
    DrainSteps,
    HeldLock,
    RunningExecution,
    RunPhase,
    UnfinishedJob,
    Work,
    phase_between_jobs,
)

CAUSE = "the deployment was drained"
# A spot job may wait for capacity as long as a job may train.
LONGEST_JOB_SECONDS = 2 * MOST_HOURS * HOUR


class Machine(Protocol):
    """Executions of one state machine."""

    def running_arns(self) -> Sequence[str]:
        """ARNs of those that have not ended."""
        ...

    def input_of(self, arn: str) -> Mapping[str, Any]:
        """What one was started with."""
        ...

    def owns(self, arn: str) -> bool:
        """Whether an execution is this machine's."""
        ...

    def stop(self, arn: str, cause: str) -> None:
        """Stop one; that has already ended is left alone."""
        ...


@dataclass(frozen=True)
class Deployment:
    """What is drained; ``locks`` gives workload and owner of each lock that is held."""

    services: Services
    trials: Machine
    runs: Machine
    schedules: Schedules
    listing: JobListing
    locks: Callable[[], Sequence[tuple[str, str]]]


def begin_drain(deployment: Deployment, by: str) -> DrainMark:
    """Let nothing new start: the mark first, then every schedule that is enabled is disabled."""
    mark = drain_mark(deployment.services.ledger)
    enabled = deployment.schedules.enabled()
    schedules = tuple(sorted({*enabled, *mark.schedules}))
    if not mark.drained or mark.schedules != schedules:
        mark = put_mark(deployment.services, mark, drained=True, by=by, schedules=schedules)
    for name in enabled:
        deployment.schedules.switch(name, on=False)
    return mark


def end_drain(deployment: Deployment, by: str) -> tuple[str, ...] | None:
    """Let work start again; returns the schedules that were enabled, None where none was drained.

    The mark keeps the schedules until all of them are enabled, so that an interrupted call is
    completed by the next one.
    """
    services, mark = deployment.services, drain_mark(deployment.services.ledger)
    if not (mark.drained or mark.schedules):
        return None
    if mark.drained:
        mark = put_mark(services, mark, drained=False, by=by, schedules=mark.schedules)
    enabled = tuple(name for name in mark.schedules if deployment.schedules.switch(name, on=True))
    if mark.schedules:
        put_mark(services, mark, drained=False, by=by)
    return enabled


@dataclass
class Drainage:
    """Reads a deployment's work repeatedly; remembers what cannot change."""

    deployment: Deployment
    monotonic: Callable[[], float]
    _listed_from: float = field(init=False)
    _jobs: dict[str, UnfinishedJob | None] = field(default_factory=dict)
    _inputs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _ended: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The first list goes back as far as a job can train that began to."""
        self._listed_from = self.deployment.services.clock.now() - LONGEST_JOB_SECONDS

    def read(self) -> Work:
        """What is in progress now."""
        # Jobs first: none of them can then belong to an execution that starts after this reading.
        jobs = self._unfinished_jobs()
        trials = tuple(self.deployment.trials.running_arns())
        runs = tuple(self.deployment.runs.running_arns())
        running, now, locks = {*trials, *runs}, self.monotonic(), []
        for workload, owner in self.deployment.locks():
            ended_for = None if owner in running else now - self._ended.setdefault(owner, now)
            locks.append(HeldLock(workload, owner, ended_for))
        return Work(
            trials=tuple(RunningExecution(arn) for arn in trials),
            runs=tuple(RunningExecution(arn, self._phase(arn, jobs)) for arn in runs),
            jobs=tuple(jobs),
            locks=tuple(locks),
        )

    def take(self, steps: DrainSteps) -> None:
        """Stop what is to be stopped, and clean up after trials whose own clean-up was lost."""
        services = self.deployment.services
        for execution in steps.executions:
            machine = self.deployment.runs if execution.phase else self.deployment.trials
            machine.stop(execution.arn, CAUSE)
        for job in steps.jobs:
            services.jobs.stop(job.name)
        for lock in steps.locks:
            workload, trial = naming.trial_of(lock.owner)
            event = {
                "workload": workload, "trial": trial, "execution": lock.owner,
                "error": "Drained", "cause": CAUSE,
            }  # fmt: skip
            abort_trial(event, services=services)
            services.locks.release(lock.workload, lock.owner)

    def _unfinished_jobs(self) -> list[UnfinishedJob]:
        """Jobs of this deployment; not those of another stage, or that are gone.

        The first time all that can still train are listed, then the new ones alone.
        """
        services, runs = self.deployment.services, self.deployment.runs
        now, since = services.clock.now(), self._listed_from
        listed = self.deployment.listing.unfinished(f"{naming.JOB_PREFIX}-", since)
        for name in listed:
            if name not in self._jobs:
                execution = services.jobs.tags(name).get(naming.TAG_EXECUTION, "")
                job, production = None, runs.owns(execution)
                if production or self.deployment.trials.owns(execution):
                    job = UnfinishedJob(name, execution, production)
                self._jobs[name] = job
        own = {name: job for name, job in self._jobs.items() if job is not None}
        statuses = {
            name: one["TrainingJobStatus"] for name, one in services.jobs.describe_all(own).items()
        }
        self._listed_from = now - CLOCKS_APART_SECONDS
        return [
            replace(job, stopping=statuses[name] == STOPPING)
            for name, job in own.items()
            if statuses.get(name) in ACTIVE
        ]

    def _phase(self, arn: str, unfinished: Sequence[UnfinishedJob]) -> RunPhase:
        if any(job.execution == arn for job in unfinished):
            return RunPhase.TRAINING
        if arn not in self._inputs:
            self._inputs[arn] = self.deployment.runs.input_of(arn)
        execution_input = self._inputs[arn]
        if "job" in execution_input or "detail" in execution_input:  # a team's job
            return RunPhase.RECORDING
        services, workload = self.deployment.services, str(execution_input.get("workload", ""))
        runs = services.ledger.history(workload, ledger_keys.RUN_ENTRIES)
        begun = runs.run_of_execution(arn)
        if begun is None:
            return RunPhase.WAITING
        recorded = [run.job for run in runs.runs if run.run == begun.run]
        jobs = {*recorded, *jobs_of_run(workload, begun, runs, services)}
        return phase_between_jobs(jobs, {wait.job for wait in runs.waits_of(begun.run)})


def unlock(
    workload: str,
    execution: str,
    end: ExecutionEnd,
    override: Override,
    *,
    stopped: bool,
    services: Services,
) -> Unlocked:
    """Record who releases the lock of ``execution``, clean up after it, release the lock.

    ``stopped`` says that it ran until this person stopped it. Repeating an interrupted call is
    safe.
    """
    record = Unlocked(
        at=services.clock.now(),
        execution=execution,
        by=f"{HUMAN}{override.who}",
        reason=override.reason.strip(),
        status=end.status or None,
        stopped=stopped,
    )
    services.ledger.append(workload, record)
    clean_up_after(execution, end, services=services)
    services.locks.release(workload, execution)
    return record
