"""Progress of running trials: a table that moves on a terminal, a line per event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

from compilegate.cli.common.output import moves
from compilegate.cli.trials.view import JobView, TrialView
from compilegate.domain.failures import FAILED, IN_PROGRESS, STOPPED
from compilegate.domain.formats import UNKNOWN, clock, money, significant

LINE_EVERY_SECONDS = 20.0
FIGURES = ("step", "samples/s", "loss", "elapsed", "$")
ALL_FIGURES_WIDTH = 72


@contextmanager
def screen(console: Console) -> Iterator[Callable[[Sequence[TrialView]], None]]:
    """Yields the function that shows views: in a table on a terminal, else in lines."""
    if not moves(console):
        yield LineScreen(console).show
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda views: live.update(
            progress_table(views, time.time(), console.width), refresh=True
        )


def progress_table(views: Sequence[TrialView], now: float, width: int) -> Table:
    """Workloads with their arms beneath; all figures from 72 columns on, fits 80."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=False)
    full = width >= ALL_FIGURES_WIDTH
    table.add_column("workload / arm", no_wrap=full, max_width=24)
    table.add_column("stage", no_wrap=full, max_width=18)
    shown = range(len(FIGURES)) if full else (FIGURES.index("elapsed"),)
    for index in shown:
        table.add_column(FIGURES[index], justify="right", no_wrap=True)
    for view in views:
        spent = sum(job.usd(now) for job in view.jobs)
        elapsed = clock((view.state.ended_at or now) - view.state.started_at)
        rows = [(view.trial.workload, view.stage, "", "", "", elapsed, money(spent))]
        rows += [row.cells() for row in arm_rows(view, now)]
        for number, (name, stage, *figures) in enumerate(rows):
            cells = (figures[index] for index in shown)
            table.add_row(name, stage, *cells, style=None if number else "bold")
    return table


@dataclass(frozen=True)
class ArmRow:
    """One arm's line; seconds and USD are of its full runs, a speed job is every arm's."""

    arm: str
    stage: str
    figures: Mapping[str, float]
    seconds: float | None
    usd: float | None

    def cells(self) -> tuple[str, str, str, str, str, str, str]:
        """The table's cells."""
        figures = self.figures
        steps = f"/{figures['steps']:.0f}" if "steps" in figures else ""
        return (
            f"  {self.arm}",
            self.stage,
            f"{figures['step']:.0f}{steps}" if "step" in figures else "",
            _figure(figures.get("samples_per_second")),
            _figure(figures.get("loss")),
            UNKNOWN if self.seconds is None else clock(self.seconds),
            UNKNOWN if self.usd is None else money(self.usd),
        )


def arm_rows(view: TrialView, now: float) -> Iterator[ArmRow]:
    """A row per arm: its full runs once they started, its latest speed segment before."""
    speed = [job for job in view.jobs if job.is_speed]
    for arm in view.arms:
        full = [job for job in view.jobs if job.arm == arm]
        own = [job for job in speed if job.measures is None or arm in job.measures]
        if full:
            yield _full_run_row(arm, full, now)
        elif own:
            yield _segment_row(arm, own[-1])


def _full_run_row(arm: str, jobs: Sequence[JobView], now: float) -> ArmRow:
    """Counts the runs requested so far; the judge decides on more from round to round.

    A stopped job is not a run, but its time is counted.
    """
    runs = [job for job in jobs if job.status != STOPPED]
    ended = sum(not job.active for job in runs)
    printing = [job for job in jobs if job.active and job.lines.by_arm] or list(jobs)
    figures = next(iter(printing[0].lines.by_arm.values()), {})
    return ArmRow(
        arm=arm,
        stage=f"full runs {ended}/{len(runs)}",
        figures=figures,
        seconds=sum(job.seconds(now) for job in jobs),
        usd=sum(job.usd(now) for job in jobs),
    )


def _segment_row(arm: str, job: JobView) -> ArmRow:
    stage = "speed gate ended"
    if job.waiting:
        stage = "waits for machine"
    elif job.active:
        stage = job.lines.turn if job.lines.arm == arm else "waits its turn"
    return ArmRow(arm, stage, job.lines.latest(arm), None, None)


class LineScreen:
    """One plain line per event, for pipes and logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._stages: dict[str, str] = {}
        self._statuses: dict[str, str] = {}
        self._segments: dict[str, str] = {}
        self._printed_at: dict[str, float] = {}

    def show(self, views: Sequence[TrialView]) -> None:
        """Print what has changed since the last call."""
        now = time.time()
        for view in views:
            workload = view.trial.workload
            if self._stages.get(workload) != view.stage:
                self._stages[workload] = view.stage
                self._line(workload, view.stage)
            for job in view.jobs:
                self._show_job(workload, job, now)

    def _show_job(self, workload: str, job: JobView, now: float) -> None:
        what = f"{job.run} {job.arm or 'speed gate'}"
        figures = job.lines.latest(job.lines.arm)
        status = "waits for a machine" if job.waiting else job.status
        if self._statuses.get(job.name) != status:
            self._statuses[job.name] = status
            why = f" ({job.detail})" if job.status == FAILED else ""
            took = "" if job.active else f" after {clock(job.seconds(now))}, {money(job.usd(now))}"
            words = "training" if status == IN_PROGRESS else status
            self._line(workload, f"{what}: {words}{took}{why}")
        elif job.active and self._segments.get(job.name, "") != job.lines.segment:
            self._segments[job.name] = job.lines.segment
            self._line(workload, f"{what}: {job.lines.segment}")
        elif job.active and figures and self._due(job.name):
            row = ArmRow(what, "", figures, None, None)
            step, rate, loss = row.cells()[2:5]
            arm = f"{job.lines.arm}, " if job.arm is None and job.lines.arm else ""
            parts = [f"{arm}step {step}", f"{rate} samples/s" if rate else ""]
            parts += [f"loss {loss}" if loss else "", clock(job.seconds(now))]
            self._line(workload, f"{what}: {', '.join(part for part in parts if part)}")

    def _due(self, job: str) -> bool:
        now = time.monotonic()
        if now - self._printed_at.get(job, -LINE_EVERY_SECONDS) < LINE_EVERY_SECONDS:
            return False
        self._printed_at[job] = now
        return True

    def _line(self, workload: str, text: str) -> None:
        elapsed = clock(time.monotonic() - self._began)
        self._console.print(f"{elapsed:>6} {workload}: {text}", soft_wrap=True, markup=False)


def _figure(value: float | None) -> str:
    return "" if value is None else significant(value)
