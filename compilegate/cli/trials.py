"""Trials and production runs at one moment, how they are read, and their progress on the screen.

A table that moves on a terminal, a line per event elsewhere.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from compilegate.adapters.state_machines import ExecutionState
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.output import moves
from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.failures import ACTIVE, FAILED, IN_PROGRESS, STOPPED
from compilegate.domain.formats import UNKNOWN, clock, money, significant
from compilegate.domain.optional import map_optional
from compilegate.domain.planning.arms import ArmPlan, arm_of, measured_by
from compilegate.domain.production.attempts import attempt_number, attempt_of
from compilegate.domain.production.canary import open_rounds
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job import RunJobs
from compilegate.domain.records.production import BegunRun, ProductionRun, Review
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.names import PROGRESS_LINE
from compilegate.usecases.production.begin_run import jobs_of, load_begun
from compilegate.usecases.records import Trial, find_plan
from compilegate.usecases.started_jobs import names_of_run, names_of_runs, requested_runs

_PREFIX = re.compile(PROGRESS_LINE)
# Of a run whose job is not known so many names are asked for at a time: each may have thirty.
NAMES_A_LOOK = 5


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
                figures = {}
                for key, text in values.items():
                    with suppress(ValueError):
                        figures[key] = float(text)
                self.by_arm[self.arm] = {
                    key: figure for key, figure in figures.items() if math.isfinite(figure)
                }

    @property
    def turn(self) -> str:
        """The position of a speed job's current arm."""
        if self.priming:
            return "first compilation"
        return map_optional(self.block, lambda block: f"block {block + 1}") or ""

    @property
    def segment(self) -> str:
        """The speed job's current arm and its position, empty for a full run."""
        return f"{self.arm}, {self.turn}" if self.arm and self.turn else ""


@dataclass(frozen=True)
class JobView:
    """One job; ``arm`` is None for a speed job, which ``measures`` some arms.

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
    measures: tuple[str, ...] = ()

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
        spent = map_optional(self.started_at, lambda at: (self.ended_at or now) - at)
        return max(spent or 0.0, 0.0)

    def usd(self, now: float) -> float:
        """The cost of that time at the plan's price."""
        return self.seconds(now) / 3600 * (self.usd_per_hour or 0.0)


@dataclass(frozen=True)
class View:
    """One trial or production run; ``stage`` is what happens now, in two or three words.

    ``arms`` are a plan's names, empty before there is a plan. Of a production run ``begun`` is None
    until its arm is chosen, ``runs`` are its jobs that have ended, ``review`` the judge's review.
    """

    trial: Trial
    state: ExecutionState
    arms: tuple[str, ...]
    jobs: tuple[JobView, ...]
    stage: str = ""
    begun: BegunRun | None = None
    runs: Sequence[ProductionRun] = ()
    review: Review | None = None


class Watcher(ABC):
    """Reads one execution and its jobs again and again."""

    def __init__(self, trial: Trial, arn: str, cloud: Cloud) -> None:
        self.trial, self.arn = trial, arn
        self._cloud = cloud
        self._jobs: dict[str, JobView] = {}

    @abstractmethod
    def read(self) -> View:
        """As it is now."""

    @property
    def active_jobs(self) -> list[str]:
        """Names of its jobs that had not ended when it was last read."""
        return [name for name, job in self._jobs.items() if job.active]

    def _history(self, prefix: str) -> WorkloadHistory:
        return self._cloud.services.ledger.history(self.trial.workload, prefix)

    def _read_jobs(
        self, names: Iterable[str], place: Callable[[JobView], JobView | None]
    ) -> tuple[JobView, ...]:
        """All jobs so far, those of these names too where they have begun.

        ``place`` gives a job its arm and price, None for a foreign one.
        """
        new = (name for name in names if name not in self._jobs)
        described = self._cloud.services.jobs.describe_all([*self.active_jobs, *new])
        for name, described_job in described.items():
            job = place(read_job(name, described_job, self._jobs.get(name), self._cloud))
            if job is not None:
                self._jobs[name] = job
        by_start = sorted(self._jobs.values(), key=lambda job: job.started_at or math.inf)
        return tuple(by_start)


class TrialWatcher(Watcher):
    """Reads one trial repeatedly."""

    def __init__(self, trial: Trial, arn: str, cloud: Cloud) -> None:
        super().__init__(trial, arn, cloud)
        self._plan: RecordedPlan | None = None
        self._turn = 0

    def read(self) -> View:
        """The trial as it is now."""
        state = self._cloud.executions.describe(self.arn)
        self._plan = self._plan or find_plan(self._cloud.services.store, self.trial)
        if self._plan is None:
            return View(self.trial, state, (), (), self._stage(state, ()))
        arms = self._plan.arms
        jobs = self._read_jobs(self._new_names(), partial(self._placed, arms))
        names = tuple(arm.name for arm in arms)
        return View(self.trial, state, names, jobs, self._stage(state, jobs))

    def _stage(self, state: ExecutionState, jobs: Sequence[JobView]) -> str:
        if not state.running:
            return "decided" if state.succeeded else state.status.lower()
        active = [job for job in jobs if job.active]
        if active:
            return "speed gate" if active[0].arm is None else "full runs"
        if map_optional(self._plan, lambda plan: plan.is_canary):
            history = self._history(ledger_keys.CANARY_ENTRIES)
            rounds = open_rounds(history, self._cloud.services.clock.now())
            own = [run.arm for one in rounds if one.trial == self.trial.trial for run in one.runs]
            if own:
                return f"waits for production: {', '.join(own)}"
        key = ApprovalRequested.key_of(trial=self.trial.trial)
        if jobs and any(one.trial == self.trial.trial for one in self._history(key).open_approvals):
            return "waits for approval, see compilegate status"
        return "judging" if jobs else "checking, planning"

    def _new_names(self) -> Iterable[str]:
        """Of the runs without a known job the first tries, and some of the later ones in turn."""
        seen = {job.run for job in self._jobs.values()}
        runs = requested_runs(self.trial, self._cloud.services.store)
        names = names_of_runs(self.trial, [run for run in runs if run.text not in seen])
        names.sort(key=naming.retries)
        self._turn = self._turn + NAMES_A_LOOK if self._turn < len(names) else 0
        in_turn = names[self._turn : self._turn + NAMES_A_LOOK]
        return dict.fromkeys([*names[:NAMES_A_LOOK], *in_turn])

    def _placed(self, arms: Sequence[ArmPlan], job: JobView) -> JobView | None:
        run = naming.job_run(self.trial.workload, self.trial.trial, job.name)
        if run is None:
            return None
        return replace(
            job,
            run=run.text,
            arm=None if run.is_speed else arm_of(run, arms).name,
            usd_per_hour=arm_of(run, arms).usd_per_hour,
            measures=measured_by(run, arms) or tuple(arm.name for arm in arms),
        )


def read_job(
    name: str, described: Mapping[str, Any], previous: JobView | None, cloud: Cloud
) -> JobView:
    """A job as it is now, without the run and arm that its name stands for."""
    lines = previous.lines if previous else JobLines()
    messages, lines.token = cloud.logs.lines(name, lines.token)
    lines.take(messages)
    started, ended = described.get("TrainingStartTime"), described.get("TrainingEndTime")
    return JobView(
        name=name,
        run="",
        arm=None,
        status=str(described["TrainingJobStatus"]),
        detail=str(described.get("FailureReason") or described.get("SecondaryStatus") or ""),
        started_at=map_optional(started, datetime.timestamp),
        ended_at=map_optional(ended, datetime.timestamp),
        usd_per_hour=None,
        lines=lines,
    )


class RunWatcher(Watcher):
    """Reads one production run again and again."""

    def __init__(self, workload: str, run: str, arn: str, cloud: Cloud) -> None:
        super().__init__(Trial(workload, run, ""), arn, cloud)
        self._begun: BegunRun | None = None
        self._builder: RunJobs | None = None

    def read(self) -> View:
        """The run as it is now."""
        # The execution first, so that what its last step wrote is read after it.
        state, run = self._cloud.production.executions.describe(self.arn), self.trial.trial
        if self._begun is None:
            with suppress(NotFoundError):
                ledger = self._cloud.services.ledger
                self._begun = load_begun(self.trial.workload, run, ledger)
        begun, jobs = self._begun, tuple[JobView, ...]()
        if begun is not None:
            jobs = self._read_jobs(self._new_names(begun), partial(self._placed, begun))
        runs = self._history(ledger_keys.run_entries(run)).runs
        return View(
            trial=self.trial,
            state=state,
            arms=tuple(dict.fromkeys(str(job.arm) for job in jobs)),
            jobs=jobs,
            stage=self._stage(state, jobs, ended=bool(runs)),
            begun=begun,
            runs=runs,
            review=self._history(Review.key_of(run=run)).review_of(run),
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

    def _new_names(self, begun: BegunRun) -> Iterable[str]:
        history = self._history(ledger_keys.run_entries(self.trial.trial))
        recorded = [run.job for run in history.runs]
        return [*recorded, *names_of_run(self.trial.workload, begun, history)]

    def _placed(self, begun: BegunRun, job: JobView) -> JobView:
        waits = self._history(ledger_keys.wait_entries(self.trial.trial)).waits
        attempt = attempt_of(attempt_number(job.name), waits)
        run, usd = naming.trial_job_prefix(self.trial.workload, self.trial.trial), None
        with suppress(InvalidInputError, NotFoundError):
            self._builder = self._builder or jobs_of(begun, self._cloud.services)
            usd = self._builder.usd_per_hour(begun, attempt)
        return replace(
            job,
            run=job.name.removeprefix(run).rpartition("-r")[0],
            arm=attempt.arm(begun),
            usd_per_hour=usd,
        )


# Progress on the screen.

LINE_EVERY_SECONDS = 20.0
# Before its first step a job says nothing, for minutes where it compiles a large model.
SILENT_SECONDS, NO_STEP = 60.0, "no step yet, it may be compiling"
COLUMNS = ("step", "samples/s", "loss", "elapsed", "$")
ALL_COLUMNS_WIDTH = 72


@contextmanager
def screen(console: Console) -> Iterator[Callable[[Sequence[View]], None]]:
    """Yields the function that shows views: in a table on a terminal, else in lines."""
    if not moves(console):
        yield LineScreen(console).show
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda views: live.update(
            progress_table(views, time.time(), console.width), refresh=True
        )


def progress_table(views: Sequence[View], now: float, width: int) -> Table:
    """Workloads with their arms beneath; all columns from a width of 72 on, fits 80."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=False)
    full = width >= ALL_COLUMNS_WIDTH
    table.add_column("workload / arm", no_wrap=full, max_width=24)
    table.add_column("stage", no_wrap=full, max_width=18)
    shown = range(len(COLUMNS)) if full else (COLUMNS.index("elapsed"),)
    for index in shown:
        table.add_column(COLUMNS[index], justify="right", no_wrap=True)
    for view in views:
        spent = sum(job.usd(now) for job in view.jobs)
        elapsed = clock((view.state.ended_at or now) - view.state.started_at)
        rows = [(view.trial.workload, view.stage, "", "", "", elapsed, money(spent))]
        for number, (name, stage, *cells) in enumerate([*rows, *arm_rows(view, now)]):
            style = None if number else "bold"
            table.add_row(name, stage, *(cells[index] for index in shown), style=style)
    return table


def arm_rows(view: View, now: float) -> Iterator[tuple[str, ...]]:
    """The cells of each arm: its full runs once they started, its latest speed segment before.

    Elapsed time and USD are of its full runs, because a speed job is every arm's. Runs are those
    requested so far; the judge decides on more from round to round.
    """
    for arm in view.arms:
        full = [job for job in view.jobs if job.arm == arm]
        own = [job for job in view.jobs if job.arm is None and arm in job.measures]
        if full:
            # A stopped job is not a run, but its time is counted.
            runs = [job for job in full if job.status != STOPPED]
            ended = sum(not job.active for job in runs)
            printing = next((job for job in full if job.active and job.lines.by_arm), full[0])
            figures = next(iter(printing.lines.by_arm.values()), {})
            spent = clock(sum(j.seconds(now) for j in full)), money(sum(j.usd(now) for j in full))
            yield f"  {arm}", f"full runs {ended}/{len(runs)}", *_cells(figures), *spent
        elif own:
            job = own[-1]
            stage = "speed gate ended"
            if job.active:
                stage = job.lines.turn if job.lines.arm == arm else "waits its turn"
            if job.waiting:
                stage = "waits for machine"
            yield f"  {arm}", stage, *_cells(job.lines.by_arm.get(arm, {})), UNKNOWN, UNKNOWN


def _cells(figures: Mapping[str, float]) -> tuple[str, str, str]:
    """Step, samples per second and loss; empty what was not printed."""
    step = f"{figures['step']:.0f}" if "step" in figures else ""
    steps = f"/{figures['steps']:.0f}" if step and "steps" in figures else ""
    rate, loss = (
        significant(figures[name]) if name in figures else ""
        for name in ("samples_per_second", "loss")
    )
    return step + steps, rate, loss


class LineScreen:
    """One plain line per event, for pipes and logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._last: dict[tuple[str, str], str] = {}  # by kind of event, and workload or job
        self._printed_at = defaultdict[str, float](lambda: -LINE_EVERY_SECONDS)
        self._heard_at = defaultdict[str, float](time.monotonic)  # any event of a job

    def show(self, views: Sequence[View]) -> None:
        """Print what has changed since the last call."""
        now = time.time()
        for view in views:
            workload = view.trial.workload
            if self._is_new("stage", workload, view.stage):
                self._line(workload, view.stage)
            for job in view.jobs:
                if event := self._event(job, now):
                    self._heard_at[job.name] = time.monotonic()
                    self._line(workload, f"{job.run} {job.arm or 'speed gate'}: {event}")

    def _event(self, job: JobView, now: float) -> str:
        """What is new of a job; empty where nothing is."""
        status = "waits for a machine" if job.waiting else job.status
        if self._is_new("status", job.name, status):
            why = f" ({job.detail})" if job.status == FAILED else ""
            took = "" if job.active else f" after {clock(job.seconds(now))}, {money(job.usd(now))}"
            return f"{'training' if status == IN_PROGRESS else status}{took}{why}"
        if not job.active:
            return ""
        if self._is_new("segment", job.name, job.lines.segment):
            return job.lines.segment
        figures, moment = job.lines.by_arm.get(job.lines.arm, {}), time.monotonic()
        if not figures and moment - self._heard_at[job.name] < SILENT_SECONDS:
            return ""
        if figures and moment - self._printed_at[job.name] < LINE_EVERY_SECONDS:
            return ""
        self._printed_at[job.name] = moment
        step, rate, loss = _cells(figures)
        arm = f"{job.lines.arm}, " if job.arm is None and job.lines.arm else ""
        parts = [
            f"{arm}step {step}" if figures else f"{arm}{NO_STEP}",
            rate and f"{rate} samples/s",
            loss and f"loss {loss}",
        ]
        return ", ".join(part for part in [*parts, clock(job.seconds(now))] if part)

    def _is_new(self, kind: str, of: str, value: str) -> bool:
        """Whether it is another value than the last; before the first it was empty."""
        before = self._last.get((kind, of), "")
        self._last[kind, of] = value
        return value != before

    def _line(self, workload: str, text: str) -> None:
        elapsed = clock(time.monotonic() - self._began)
        self._console.print(f"{elapsed:>6} {workload}: {text}", soft_wrap=True, markup=False)
