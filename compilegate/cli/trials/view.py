"""A trial or a production run at one moment, and how it is read."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from compilegate.adapters.state_machines import ExecutionState, StepFunctionsExecutions
from compilegate.cli.common.cloud import Cloud
from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.failures import ACTIVE
from compilegate.domain.planning.arms import arm_of, measured_by
from compilegate.domain.production.attempts import Attempt, attempt_number, attempt_of
from compilegate.domain.production.canary import open_rounds
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job import RunJobs
from compilegate.domain.records.canary import CanaryRound
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import BegunRun, ProductionRun
from compilegate.domain.request.build import PROGRESS_LINE
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.usecases.flag.approval import approval_of
from compilegate.usecases.production.build_request import jobs_of, load_begun
from compilegate.usecases.records import Trial, find_plan

_PREFIX = re.compile(PROGRESS_LINE)


@dataclass
class JobLines:
    """What one job has printed so far; figures by arm, because a speed job runs several arms."""

    arm: str | None = None
    block: int | None = None
    priming: bool = False  # fills its compile cache; measured blocks come after
    by_arm: dict[str | None, Mapping[str, float]] = field(default_factory=dict)
    token: str | None = None

    def take(self, lines: Iterable[str]) -> None:
        """Read more lines; those that are not progress are skipped."""
        for line in lines:
            prefix = _PREFIX.match(line)
            parts = line[prefix.end() :].replace(";", " ").split() if prefix else ()
            values = dict(part.split("=", 1) for part in parts if "=" in part)
            self.arm = values.get("arm", self.arm)
            if values.get("block", "").isdigit():
                self.block = int(values["block"])
            if "priming" in values or "blocks" in values:
                self.priming = "priming" in values
            if "step" in values:
                self.by_arm[self.arm] = _numbers(values)

    @property
    def turn(self) -> str:
        """The position of a speed job's current arm."""
        if self.priming:
            return "first compilation"
        return "" if self.block is None else f"block {self.block + 1}"

    @property
    def segment(self) -> str:
        """The speed job's current arm and its position, empty for a full run."""
        return f"{self.arm}, {self.turn}" if self.arm and self.turn else ""


def _numbers(values: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for key, text in values.items():
        with suppress(ValueError):
            numbers[key] = float(text)
    return {key: number for key, number in numbers.items() if math.isfinite(number)}


@dataclass(frozen=True)
class JobView:
    """One job; ``arm`` is None for a speed job, which ``measures`` some arms, None: all of them.

    Seconds of wall clock.
    """

    name: str
    run: str
    arm: str | None
    status: str
    detail: str
    started_at: float | None
    ended_at: float | None
    usd_per_hour: float | None
    lines: JobLines
    measures: tuple[str, ...] | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.status in ACTIVE

    @property
    def waiting(self) -> bool:
        """Whether it has been created and does not train yet."""
        return self.active and self.started_at is None

    def seconds(self, now: float) -> float:
        """How long it has trained."""
        return 0.0 if self.started_at is None else max((self.ended_at or now) - self.started_at, 0)

    def usd(self, now: float) -> float:
        """The cost of that time at the plan's price."""
        return self.seconds(now) / 3600 * (self.usd_per_hour or 0.0)


@dataclass(frozen=True)
class TrialView:
    """One trial; ``stage`` is what happens now, in two or three words.

    ``arms`` are the plan's names, empty before there is a plan.
    """

    trial: Trial
    state: ExecutionState
    arms: tuple[str, ...]
    jobs: tuple[JobView, ...]
    stage: str = ""


@dataclass(frozen=True)
class RunView(TrialView):
    """One production run; ``begun`` is None until its arm is chosen.

    ``runs`` are its jobs that have ended, ``review`` is the judge's review after it.
    """

    begun: BegunRun | None = None
    runs: Sequence[ProductionRun] = ()
    review: Review | None = None


View = TypeVar("View", bound=TrialView)


class Watcher(ABC, Generic[View]):
    """Reads one execution and its jobs again and again."""

    def __init__(
        self, trial: Trial, arn: str, executions: StepFunctionsExecutions, cloud: Cloud
    ) -> None:
        self._trial, self._arn, self._executions, self._cloud = trial, arn, executions, cloud
        self._jobs: dict[str, JobView] = {}

    @abstractmethod
    def read(self) -> View:
        """As it is now."""

    @abstractmethod
    def _placed(self, job: JobView) -> JobView | None:
        """The job with its arm and price, once they are known; None for a foreign one."""

    def _read_jobs(self) -> tuple[JobView, ...]:
        workload, trial = self._trial.workload, self._trial.trial
        listed = self._cloud.services.jobs.statuses(naming.trial_job_prefix(workload, trial))
        for name in naming.own_jobs(workload, trial, listed):
            previous = self._jobs.get(name)
            if previous is None or previous.active:
                job = self._placed(read_job(name, previous, self._cloud))
                if job is not None:
                    self._jobs[name] = job
        return tuple(self._jobs.values())


class TrialWatcher(Watcher[TrialView]):
    """Reads one trial repeatedly."""

    def __init__(self, trial: Trial, arn: str, cloud: Cloud) -> None:
        super().__init__(trial, arn, cloud.executions, cloud)
        self._plan: RecordedPlan | None = None

    def read(self) -> TrialView:
        """The trial as it is now."""
        state = self._executions.describe(self._arn)
        if self._plan is None:
            self._plan = find_plan(self._cloud.services.store, self._trial)
        arms = tuple(arm.name for arm in self._plan.arms) if self._plan else ()
        jobs = self._read_jobs() if self._plan else ()
        return TrialView(self._trial, state, arms, jobs, self._stage(state, jobs))

    def _stage(self, state: ExecutionState, jobs: Sequence[JobView]) -> str:
        if not state.running:
            return "decided" if state.succeeded else state.status.lower()
        active = [job for job in jobs if job.active]
        if active:
            return "speed gate" if active[0].arm is None else "full runs"
        if self._plan is not None and self._plan.is_canary:
            rounds = waiting_rounds(self._trial.workload, self._cloud)
            own = [run.arm for one in rounds if one.trial == self._trial.trial for run in one.runs]
            if own:
                return f"waits for production: {', '.join(own)}"
        approval = approval_of(self._trial, self._cloud.services.ledger) if jobs else None
        if approval is not None and approval.answer is None:
            return "waits for approval, see compilegate status"
        return "judging" if jobs else "checking, planning"

    def _placed(self, job: JobView) -> JobView | None:
        run = naming.job_run(self._trial.workload, self._trial.trial, job.name)
        if run is None or self._plan is None:
            return None
        arms = self._plan.arms
        return replace(
            job,
            run=run.text,
            arm=None if run.arm_index is None else arms[run.arm_index].name,
            usd_per_hour=arm_of(run, arms).usd_per_hour,
            measures=measured_by(run, arms),
        )


def waiting_rounds(workload: str, cloud: Cloud) -> list[CanaryRound]:
    """The rounds of canary runs that production has yet to train for a workload's trials."""
    past = cloud.services.ledger.history(workload, ledger_keys.CANARY_ENTRIES)
    return open_rounds(past, cloud.services.clock.now())


def read_job(name: str, previous: JobView | None, cloud: Cloud) -> JobView:
    """A job as it is now, without the run and arm that its name stands for."""
    described = cloud.services.jobs.describe(name)
    lines = previous.lines if previous else JobLines()
    messages, lines.token = cloud.logs.lines(name, lines.token)
    lines.take(messages)
    started, ended = described.get("TrainingStartTime"), described.get("TrainingEndTime")
    return JobView(
        name=name,
        run="",
        arm=None,
        # A job that was just listed may not be described yet.
        status=str(described.get("TrainingJobStatus", "InProgress")),
        detail=str(described.get("FailureReason") or described.get("SecondaryStatus") or ""),
        started_at=started and started.timestamp(),
        ended_at=ended and ended.timestamp(),
        usd_per_hour=None,
        lines=lines,
    )


class RunWatcher(Watcher[RunView]):
    """Reads one production run again and again."""

    def __init__(self, workload: str, run: str, arn: str, cloud: Cloud) -> None:
        super().__init__(Trial(workload, run, ""), arn, cloud.production.executions, cloud)
        self._begun: BegunRun | None = None
        self._builder: RunJobs | None = None

    def read(self) -> RunView:
        """The run as it is now."""
        # The execution first, so that what its last step wrote is read after it.
        state, run = self._executions.describe(self._arn), self._trial.trial
        if self._begun is None:
            with suppress(NotFoundError):
                ledger = self._cloud.services.ledger
                self._begun = load_begun(self._trial.workload, run, ledger)
        jobs = () if self._begun is None else self._read_jobs()
        runs = self._past(ledger_keys.run_entries(run)).runs
        return RunView(
            trial=self._trial,
            state=state,
            arms=tuple(dict.fromkeys(str(job.arm) for job in jobs)),
            jobs=jobs,
            stage=self._stage(state, jobs, ended=bool(runs)),
            begun=self._begun,
            runs=runs,
            review=self._past(Review.key_of(run=run)).review_of(run),
        )

    def _stage(self, state: ExecutionState, jobs: Sequence[JobView], *, ended: bool) -> str:
        if not state.running:
            return "done" if state.succeeded else state.status.lower()
        if self._begun is None:
            return "reading the flag"
        if any(job.active for job in jobs):
            return "training"
        if ended:
            return "recording"
        return "waits for machines" if jobs else "building the job"

    def _past(self, prefix: str) -> WorkloadHistory:
        return self._cloud.services.ledger.history(self._trial.workload, prefix)

    def _placed(self, job: JobView) -> JobView | None:
        begun = self._begun
        if begun is None:
            return None
        waits = self._past(ledger_keys.wait_entries(self._trial.trial)).waits
        attempt = attempt_of(attempt_number(job.name), waits)
        run = naming.trial_job_prefix(self._trial.workload, self._trial.trial)
        return replace(
            job,
            run=job.name.removeprefix(run).rpartition("-r")[0],
            arm=attempt.arm(begun),
            usd_per_hour=self._price(begun, attempt),
        )

    def _price(self, begun: BegunRun, attempt: Attempt) -> float | None:
        try:
            self._builder = self._builder or jobs_of(begun, self._cloud.services)
            return self._builder.usd_per_hour(begun, attempt)
        except (InvalidInputError, NotFoundError):
            return None
