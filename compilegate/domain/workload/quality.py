"""The metrics that a workload file names, and how much each may lose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilegate.domain.expected import Problem, Section, key
from compilegate.domain.workload import names

GOALS = ("maximize", "minimize")
# Keys that list further metrics, which 0.2.0 refuses, and how many. A job may have 40 metric
# definitions (CreateTrainingJob).
LISTED = ("guardrails", "signals")
MOST_METRICS = 8


@dataclass(frozen=True)
class Metric(Section):
    """A metric that a job reports, and the loss of it that is not accepted."""

    metric: str = key("name that the job reports it under", form=names.METRIC)
    goal: str = key("which way is better", allowed=GOALS)
    margin: float = key(
        "smallest loss that is not accepted, fixed before any run",
        "the metric's own unit",
        above=0.0,
    )
    history: tuple[float, ...] = key(
        "final metrics of past production baseline runs, newest last", default=()
    )


@dataclass(frozen=True)
class Quality(Metric):
    """The metrics that must not get worse; ``early_stopping`` None is where nothing is said.

    A candidate is promoted only if the first metric and every guardrail hold. A signal that does
    not hold lets a person decide.
    """

    history_set: str | None = key(
        "examples that they were scored on (set_sha256); on others they do not count",
        default=None,
        form=names.EVALUATION_SET,
    )
    early_stopping: bool | None = key(
        "whether the script decides when a run ends; equal steps are then compared", default=None
    )
    target: float | None = key(
        "value of the metric; for candidates whose steps differ the time to it decides on speed",
        "the metric's own unit",
        default=None,
    )
    guardrails: tuple[Metric, ...] = key(
        "list of further metrics (metric, goal, margin, history), which have to hold as well",
        default=(),
    )
    signals: tuple[Metric, ...] = key(
        "list of metrics; one that does not hold asks a person before the flag is turned on",
        default=(),
    )

    @property
    def reported(self) -> tuple[str, ...]:
        """The names of all metrics, the first one first."""
        return self.metric, *(one.metric for one in (*self.guardrails, *self.signals))

    def problems(self) -> Iterator[Problem]:
        """A metric that stands there twice, and more than a trial watches."""
        seen = {self.metric}
        for name in LISTED:
            listed = getattr(self, name)
            if len(listed) > MOST_METRICS:
                yield name, f"holds {len(listed)} metrics", f"list at most {MOST_METRICS}"
            for index, one in enumerate(listed):
                if one.metric in seen:
                    problem = f"names {one.metric!r}, which quality names before"
                    yield f"{name}[{index}].metric", problem, "name each metric once"
                seen.add(one.metric)
