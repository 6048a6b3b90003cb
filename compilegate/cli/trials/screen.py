"""Progress of running trials: a table that moves on a terminal, a line per event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from compilegate.cli.common.output import moves
from compilegate.cli.trials.view import JobView, TrialView
from compilegate.domain.failures import FAILED, IN_PROGRESS, STOPPED
from compilegate.domain.formats import UNKNOWN, clock, money, significant

LINE_EVERY_SECONDS = 20.0
COLUMNS = ("step", "samples/s", "loss", "elapsed", "$")
ALL_COLUMNS_WIDTH = 72


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


def arm_rows(view: TrialView, now: float) -> Iterator[tuple[str, ...]]:
    """The cells of each arm: its full runs once they started, its latest speed segment before.

    Elapsed time and USD are of its full runs, because a speed job is every arm's. Runs are those
    requested so far; the judge decides on more from round to round.
    """
    for arm in view.arms:
        full = [job for job in view.jobs if job.arm == arm]
        own = [
            job for job in view.jobs
            if job.arm is None and (job.measures is None or arm in job.measures)
        ]  # fmt: skip
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
        self._printed_at: dict[str, float] = {}

    def show(self, views: Sequence[TrialView]) -> None:
        """Print what has changed since the last call."""
        now = time.time()
        for view in views:
            workload = view.trial.workload
            if self._is_new("stage", workload, view.stage):
                self._line(workload, view.stage)
            for job in view.jobs:
                if event := self._event(job, now):
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
        figures = job.lines.by_arm.get(job.lines.arm, {})
        if not figures or not self._due(job.name):
            return ""
        step, rate, loss = _cells(figures)
        arm = f"{job.lines.arm}, " if job.arm is None and job.lines.arm else ""
        parts = [f"{arm}step {step}", rate and f"{rate} samples/s", loss and f"loss {loss}"]
        return ", ".join(part for part in [*parts, clock(job.seconds(now))] if part)

    def _is_new(self, kind: str, of: str, value: str) -> bool:
        """Whether it is another value than the last; before the first it was empty."""
        before = self._last.get((kind, of), "")
        self._last[kind, of] = value
        return value != before

    def _due(self, job: str) -> bool:
        now = time.monotonic()
        if now - self._printed_at.get(job, -LINE_EVERY_SECONDS) < LINE_EVERY_SECONDS:
            return False
        self._printed_at[job] = now
        return True

    def _line(self, workload: str, text: str) -> None:
        elapsed = clock(time.monotonic() - self._began)
        self._console.print(f"{elapsed:>6} {workload}: {text}", soft_wrap=True, markup=False)
