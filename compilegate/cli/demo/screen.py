"""What the demo prints: a line for each verdict, the table at the end, where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from compilegate.cli.common.figures import decision_rows
from compilegate.cli.common.outcome import Outcome
from compilegate.cli.common.output import console, say, say_line, verdict_text
from compilegate.cli.trials.view import TrialView
from compilegate.domain.formats import clock, elapsed, percent
from compilegate.domain.words import verdict_label

NAME_WIDTH, FIGURES_WIDTH = 18, 30  # "no fair comparison", "speed-up 1.31x (1.25 to 1.37)"
FRAME_WIDTH = 10


@dataclass(frozen=True)
class Times:
    """Where the demo's wall clock went, in seconds; ``overhead`` is all that is not training."""

    total: float
    setup: float
    deploy: float
    training: float
    loop: float

    @property
    def overhead(self) -> float:
        """Everything but training."""
        return self.total - self.training

    def to_dict(self) -> dict[str, float]:
        """Rounded, for programs."""
        return {
            name: round(value, 1)
            for name, value in {**asdict(self), "overhead": self.overhead}.items()
        }


def measure_times(
    views: Sequence[TrialView], *, setup: float, deploy: float, total: float
) -> Times:
    """Training is the time in which any job trained; the loop is the rest of the trials."""
    spans = sorted(
        (job.started_at, job.ended_at)
        for view in views
        for job in view.jobs
        if job.started_at is not None and job.ended_at is not None
    )
    training, reached = 0.0, 0.0
    for began, ended in spans:
        training += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return Times(
        total=total,
        setup=setup,
        deploy=deploy,
        training=training,
        loop=max(total - setup - deploy - training, 0.0),
    )


def verdict_line(outcome: Outcome, seconds: float) -> Text:
    """A verdict as it is reached, ``seconds`` after the trials began."""
    name = (outcome.workload, "bold")
    return Text.assemble(f"{clock(seconds):>6} ", name, f": {outcome.headline}")


def show_demo(outcomes: Sequence[Outcome], times: Times, simulated: str | None) -> None:
    """The table, the reports and the times."""
    say()
    console().print(demo_table(outcomes))
    say("Reports:")
    for outcome in outcomes:
        failed = "trial" if outcome.decision is None else "report"
        say_line(f"  {outcome.report or f'none: the {failed} of {outcome.workload} failed'}")
    say()
    say(
        f"Took {elapsed(times.total)}: set-up {times.setup:.0f} s, deploy {times.deploy:.0f} s, "
        f"training {elapsed(times.training)}, the rest of the loop {times.loop:.0f} s. "
        f"Not training: {percent(times.overhead / times.total, 2)}."
    )
    if simulated:
        say(f"Simulated: {simulated} The verdicts are measured, and may differ on another machine.")


def demo_table(outcomes: Sequence[Outcome]) -> Table:
    """A row per workload: verdict, why, figures; fits 80 columns."""
    out = console()
    table = Table(box=box.ROUNDED if out.is_terminal else box.ASCII2, show_lines=True)
    table.add_column("workload, verdict", width=NAME_WIDTH, overflow="fold")
    table.add_column("why", width=max(out.width - NAME_WIDTH - FIGURES_WIDTH - FRAME_WIDTH, 10))
    table.add_column("measured", width=FIGURES_WIDTH)
    for outcome in outcomes:
        name = Text.assemble((outcome.workload, "bold"), "\n", verdict_text(outcome.verdict))
        table.add_row(name, _why(outcome), _measured(outcome.decision))
    return table


def _why(outcome: Outcome) -> str:
    """The headline without the verdict that stands beside it."""
    label = f"{verdict_label(outcome.verdict).text}: "
    why = outcome.headline.removeprefix(label)
    return why[:1].upper() + why[1:]


def _measured(decision: Mapping[str, Any] | None) -> str:
    if decision is None:
        return "nothing: the flag is unchanged"
    return "\n".join(f"{name} {value}" for name, value in decision_rows(decision))
