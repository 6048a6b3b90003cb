"""A running trial at one moment, and how it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.adapters.state_machines import ExecutionState
from compilegate.cli.common.cloud import Cloud
from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.failures import ACTIVE
from compilegate.domain.planning.arms import ArmPlan, arm_of, measured_by
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
            values = _values(line)
            if not values:
                continue
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

    def latest(self, arm: str | None) -> Mapping[str, float]:
        """The arm's last figures, empty before the first."""
        return self.by_arm.get(arm, {})


def _values(line: str) -> dict[str, str]:
    prefix = _PREFIX.match(line)
    if prefix is None:
        return {}
    pairs = (part.partition("=") for part in line[prefix.end() :].replace(";", " ").split())
    return {key: value for key, equals, value in pairs if equals}


def _numbers(values: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for key, text in values.items():
        try:
            number = float(text)
        except ValueError:
            continue
        if math.isfinite(number):
            numbers[key] = number
    return numbers


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
    instance_type: str | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.status in ACTIVE

    @property
    def waiting(self) -> bool:
        """Whether it has been created and does not train yet."""
        return self.active and self.started_at is None

    @property
    def is_speed(self) -> bool:
        """Whether it is a speed job."""
        return self.arm is None

    def seconds(self, now: float) -> float:
        """How long it has trained."""
        return 0.0 if self.started_at is None else max((self.ended_at or now) - self.started_at, 0)

    def usd(self, now: float) -> float:
        """The cost of that time at the plan's price."""
        return self.seconds(now) / 3600 * (self.usd_per_hour or 0.0)


@dataclass(frozen=True)
class TrialView:
    """One trial; ``arms`` are the plan's names, empty before there is a plan.

    ``canary_arms`` are the arms that production has yet to train for it, in turn;
    ``needs_approval`` says whether its promotion waits for approval.
    """

    trial: Trial
    state: ExecutionState
    arms: tuple[str, ...]
    jobs: tuple[JobView, ...]
    canary_arms: tuple[str, ...] = ()
    needs_approval: bool = False

    @property
    def stage(self) -> str:
        """What happens now, in two or three words."""
        if not self.state.running:
            return "decided" if self.state.succeeded else self.state.status.lower()
        active = [job for job in self.jobs if job.active]
        if active:
            return "speed gate" if active[0].is_speed else "full runs"
        if self.canary_arms:
            return f"waits for production: {', '.join(self.canary_arms)}"
        if self.needs_approval:
            return "waits for approval, see compilegate status"
        return "judging" if self.jobs else "checking, planning"


class TrialWatcher:
    """Reads one trial repeatedly."""

    def __init__(self, trial: Trial, arn: str, cloud: Cloud) -> None:
        self.trial, self.arn = trial, arn
        self._cloud = cloud
        self._plan: RecordedPlan | None = None
        self._jobs: dict[str, JobView] = {}

    def read(self) -> TrialView:
        """The trial as it is now."""
        state = self._cloud.executions.describe(self.arn)
        if self._plan is None:
            self._plan = find_plan(self._cloud.services.store, self.trial)
        plan = self._plan
        if plan is not None:
            prefix = naming.trial_job_prefix(self.trial.workload, self.trial.trial)
            for name in self._cloud.watch.names(prefix):
                run = naming.job_run(self.trial.workload, self.trial.trial, name)
                previous = self._jobs.get(name)
                if run is not None and (previous is None or previous.active):
                    self._jobs[name] = self._read_job(name, run, plan.arms, previous)
        jobs = tuple(self._jobs.values())
        return TrialView(
            self.trial,
            state,
            tuple(arm.name for arm in plan.arms) if plan else (),
            jobs,
            canary_arms=self._canary_arms(state, jobs) if plan and plan.is_canary else (),
            needs_approval=self._needs_approval(state, jobs),
        )

    def _canary_arms(self, state: ExecutionState, jobs: Sequence[JobView]) -> tuple[str, ...]:
        if not state.running or any(job.active for job in jobs):
            return ()
        return tuple(
            run.arm
            for round_ in waiting_rounds(self.trial.workload, self._cloud)
            if round_.trial == self.trial.trial
            for run in round_.runs
        )

    def _needs_approval(self, state: ExecutionState, jobs: Sequence[JobView]) -> bool:
        if not state.running or not jobs or any(job.active for job in jobs):
            return False
        approval = approval_of(self.trial, self._cloud.services.ledger)
        return approval is not None and approval.answer is None

    def _read_job(
        self, name: str, run: naming.RunId, arms: Sequence[ArmPlan], previous: JobView | None
    ) -> JobView:
        job = read_job(name, previous, self._cloud)
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
    messages, lines.token = cloud.watch.lines(name, lines.token)
    lines.take(messages)
    return JobView(
        name=name,
        run="",
        arm=None,
        # A job that was just listed may not be described yet.
        status=str(described.get("TrainingJobStatus", "InProgress")),
        detail=str(described.get("FailureReason") or described.get("SecondaryStatus") or ""),
        started_at=_epoch(described.get("TrainingStartTime")),
        ended_at=_epoch(described.get("TrainingEndTime")),
        usd_per_hour=None,
        lines=lines,
        instance_type=(described.get("ResourceConfig") or {}).get("InstanceType"),
    )


def _epoch(moment: Any) -> float | None:
    return None if moment is None else float(moment.timestamp())


# A production run at one moment, and how it is read.


@dataclass(frozen=True)
class RunView(TrialView):
    """One production run; ``begun`` is None until its arm is chosen.

    ``past`` are its ledger entries, ``review`` is the judge's review after it.
    """

    begun: BegunRun | None = None
    past: WorkloadHistory = field(default_factory=WorkloadHistory)
    review: Review | None = None

    @property
    def runs(self) -> Sequence[ProductionRun]:
        """Its jobs that have ended."""
        return self.past.runs

    @property
    def stage(self) -> str:
        """What happens now, in two or three words."""
        if not self.state.running:
            return "done" if self.state.succeeded else self.state.status.lower()
        if self.begun is None:
            return "reading the flag"
        if any(job.active for job in self.jobs):
            return "training"
        if self.runs:
            return "recording"
        return "waits for machines" if self.jobs else "building the job"


class RunWatcher:
    """Reads one production run again and again."""

    def __init__(self, workload: str, run: str, arn: str, cloud: Cloud) -> None:
        self.run, self.arn = Trial(workload, run, ""), arn
        self._cloud = cloud
        self._begun: BegunRun | None = None
        self._builder: RunJobs | None = None
        self._jobs: dict[str, JobView] = {}

    def read(self) -> RunView:
        """The run as it is now."""
        # The execution first, so that what its last step wrote is read after it.
        state = self._cloud.production.executions.describe(self.arn)
        self._begun = self._begun or self._read_begun()
        if self._begun is not None:
            self._read_jobs()
        jobs = tuple(self._jobs.values())
        return RunView(
            trial=self.run,
            state=state,
            arms=tuple(dict.fromkeys(str(job.arm) for job in jobs)),
            jobs=jobs,
            begun=self._begun,
            past=self._past(ledger_keys.run_entries(self.run.trial)),
            review=self._past(ledger_keys.watch_entry(self.run.trial)).review_of(self.run.trial),
        )

    def _past(self, prefix: str) -> WorkloadHistory:
        return self._cloud.services.ledger.history(self.run.workload, prefix)

    def _read_begun(self) -> BegunRun | None:
        try:
            return load_begun(self.run.workload, self.run.trial, self._cloud.services.ledger)
        except NotFoundError:
            return None

    def _read_jobs(self) -> None:
        prefix = naming.trial_job_prefix(self.run.workload, self.run.trial)
        listed = self._cloud.watch.names(prefix)
        for name in naming.own_jobs(self.run.workload, self.run.trial, listed):
            previous = self._jobs.get(name)
            if previous is None or previous.active:
                job = read_job(name, previous, self._cloud)
                self._jobs[name] = self._placed(job, name.removeprefix(prefix))

    def _placed(self, job: JobView, run: str) -> JobView:
        """The job with its arm and price, once the ledger has them."""
        begun = self._begun
        if begun is None:
            return job
        waits = self._past(ledger_keys.wait_entries(self.run.trial)).waits
        attempt = attempt_of(attempt_number(job.name), waits)
        return replace(
            job,
            run=run.rpartition("-r")[0],
            arm=attempt.arm(begun),
            usd_per_hour=self._price(begun, attempt),
        )

    def _price(self, begun: BegunRun, attempt: Attempt) -> float | None:
        try:
            self._builder = self._builder or jobs_of(begun, self._cloud.services)
            return self._builder.usd_per_hour(begun, attempt)
        except (InvalidInputError, NotFoundError):
            return None
