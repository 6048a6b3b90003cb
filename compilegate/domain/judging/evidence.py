"""Evidence, validated: what the judge reads (docs/contracts.md).

A run that did not finish is a result, not missing data. Of a run's ``record`` the judge itself
uses ``fingerprint``, ``initial_loss``, ``initial_weights_sha256``, ``final_weights_sha256``,
``final_start_sha256``, ``loss_curve``, ``steps`` and ``seconds`` where a job recorded them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from compilegate.domain.arithmetic import mean, median
from compilegate.domain.compilers import compiler_named
from compilegate.domain.decision import SHADOW
from compilegate.domain.expected import Section, key
from compilegate.domain.faults import FaultTable
from compilegate.domain.fields import LARGEST
from compilegate.domain.formats import number
from compilegate.domain.judging.checks import Check, read_check
from compilegate.domain.judging.outcomes import Outcomes, read_outcomes
from compilegate.domain.judging.steady_state import Segment, analyse
from compilegate.domain.optional import without_none
from compilegate.domain.outside import is_figure
from compilegate.domain.records.production import TEAM
from compilegate.domain.spreads import ASSUMED, Spreads
from compilegate.domain.workload.model import BASELINE, QUALITY_RUNS, Policy
from compilegate.domain.workload.quality import Metric, Quality

# Steps and blocks beyond this are typing errors.
_MOST = 10**9
_MEAN = "mean of all steps, None where none recorded any"
TRIAL = "trial"
PROBATION = "probation"
PHASES = (TRIAL, PROBATION)
# Another machine, image, launcher or script: no job can hold such an arm and the baseline.
OWN_NODES = frozenset(
    {"instance_type", "instance_count", "distribution", "framework", "entry_point"}
)

# Segments[arm][block]; None where a segment is too short for a steady state.
Segments = Mapping[str, Mapping[int, Segment | None]]


@dataclass(frozen=True)
class Run:
    """What every run has.

    ``record`` is the run as its document has it, with keys beyond the contract: it is written as
    it was read, so that a document of another release stays what it is.
    """

    finished: bool
    applied: bool | None
    record: Mapping[str, Any]

    @property
    def job(self) -> str:
        """The job that made the run, empty where it is not recorded."""
        return str(self.record.get("job") or "")

    @property
    def usd(self) -> float | None:
        """What it cost, None where it is not recorded."""
        return number(self.record.get("usd"))

    @property
    def reason(self) -> str:
        """What it said of its end, empty where it said nothing."""
        return str(self.record.get("reason") or "")

    @cached_property
    def check(self) -> Check | None:
        """Its equivalence check; None where it recorded none, or anything of it is broken."""
        return read_check(self.record.get("equivalence"))

    @cached_property
    def fingerprint(self) -> Mapping[str, Any]:
        """What the run was made of, empty where it is not recorded."""
        value = self.record.get("fingerprint")
        return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True)
class Work(Section):
    """What the lines of a full run's steps add up to."""

    steps: int = key("0 where it left none", "steps", low=0, high=_MOST)
    seconds: float = key("that they took", "seconds", default=0.0, low=0.0)
    samples_per_step: float | None = key(_MEAN, "samples", default=None, above=0.0)
    tokens_per_step: float | None = key(_MEAN, "tokens", default=None, above=0.0)


@dataclass(frozen=True)
class SpeedRun(Run):
    """One short segment of one arm; segments of equal block ran back to back on one node.

    ``full_run_steps`` are those of a production run as the job knew them, None or 0 unknown.
    """

    block: int
    node: str | None
    compile_seconds: float
    step_seconds: tuple[float, ...]
    samples_per_step: float | None
    full_run_steps: int | None
    tokens_per_step: float | None = None


@dataclass(frozen=True)
class LossPoint:
    """The loss at a step; ``seconds`` since the first one began, None where not recorded."""

    step: int
    loss: float | None
    seconds: float | None


@dataclass(frozen=True)
class FullRun(Run):
    """One full run; ``metric`` is None when it diverged, ``wall_seconds`` covers the whole job.

    ``order`` is its position in time over all full runs of all arms; ``confirm`` marks a run
    that the judge asked for to check an alarm. ``launched_by`` is TEAM for a job that a team's
    own pipeline started, of which no other arm can be requested. ``work`` is None where it was not
    added up. ``job_seconds`` is how long the service says that
    the job's container trained, None where that is unknown or was interrupted.
    """

    stage: str
    order: int
    mode: str
    seed: int | None
    metric: float | None
    wall_seconds: float | None
    confirm: bool
    launched_by: str | None
    work: Work | None = None
    job_seconds: float | None = None

    @property
    def may_check(self) -> bool:
        """Whether it checks an open alarm: it was requested, or no request is possible."""
        return self.confirm or self.launched_by == TEAM

    @cached_property
    def outcomes(self) -> Outcomes | None:
        """Its outcomes per example; None where it recorded none, or anything of them is broken."""
        return read_outcomes(self.record.get("outcomes"))

    @property
    def loss_curve(self) -> list[LossPoint]:
        """Its loss in the order of the steps, each once; empty where it recorded none."""
        points = {point.step: point for point in _points(self.record.get("loss_curve"))}
        return [points[step] for step in sorted(points)]

    @property
    def data(self) -> str | None:
        """What it was trained on, None where unknown: production may train on new data."""
        return _text(self.fingerprint.get("data_sha256"))

    @property
    def evaluations(self) -> list[tuple[float, float]]:
        """Seconds since its job began and the metric by then, in the order of time."""
        points = _points(self.record.get("evaluations"))
        pairs = [without_none([point.seconds, point.loss]) for point in points]
        return sorted((pair[0], pair[1]) for pair in pairs if len(pair) == 2 and pair[0] > 0)

    @property
    def initial_loss(self) -> float | None:
        """The loss of its first step, None where it is not recorded."""
        value = self.record.get("initial_loss")
        return value if isinstance(value, int | float) else None

    @property
    def initial_weights(self) -> str | None:
        """Fingerprint of the weights that it started from, None where it is not recorded."""
        return _text(self.record.get("initial_weights_sha256"))

    @property
    def final_weights(self) -> str | None:
        """Fingerprint of all its final weights and buffers, None where it is not recorded."""
        return _text(self.record.get("final_weights_sha256"))

    @property
    def trained_weights(self) -> str | None:
        """Fingerprint, taken as that of a start, of what it ended with.

        None where it is not recorded, and where the run ended with what it had started from.
        """
        end = _text(self.record.get("final_start_sha256"))
        return None if end == self.initial_weights else end

    def by(self, metric: str) -> FullRun:
        """The run with another metric that it recorded, as ``reported``."""
        values = self.record.get("metrics")
        value = values.get(metric) if isinstance(values, Mapping) else None
        return replace(self, metric=reported(value))

    def recorded_as(self, **keys: Any) -> FullRun:
        """The run with these fields, in its record as well."""
        return replace(self, **keys, record={**self.record, **keys})


def _points(curve: object) -> Iterator[LossPoint]:
    for point in curve if isinstance(curve, Sequence) else ():
        if not isinstance(point, Sequence) or len(point) < 2:
            continue
        step = number(point[0])
        if step is not None:
            seconds = number(point[2]) if len(point) > 2 else None
            yield LossPoint(int(step), number(point[1]), seconds)


def _text(value: object) -> str | None:
    """A recorded fingerprint; None where there is none, or an empty one."""
    return value if isinstance(value, str) and value else None


@dataclass(frozen=True)
class Arm:
    """One side of the comparison; ``full_run_steps`` is None while unknown."""

    name: str
    full_run_steps: int | None
    usd_per_hour: float | None
    devices: int
    speed: tuple[SpeedRun, ...]
    quality: tuple[FullRun, ...]
    probation: tuple[FullRun, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def steps_or_one(self) -> int:
        """Steps of a whole run, 1 while unknown: for sums and ratios that need a number."""
        return self.full_run_steps or 1

    @property
    def full_runs(self) -> tuple[FullRun, ...]:
        """Every full run of the arm, those of the trial first."""
        return (*self.quality, *self.probation)

    @property
    def runs(self) -> tuple[SpeedRun | FullRun, ...]:
        """Every run of the arm, short segments first."""
        return (*self.speed, *self.full_runs)

    @property
    def evaluation_sets(self) -> list[str]:
        """The set that each finished run of the trial was scored on, where it is recorded."""
        return [run.outcomes.set_sha256 for run in finished(self.quality) if run.outcomes]


@dataclass(frozen=True)
class TrialPlan(Section):
    """How a trial is cut into rounds; USD figures are estimates and None when unknown.

    ``runs_at_start`` is None where the evidence gives one number of remaining runs, which is then
    taken for that.
    """

    speed_steps: int = key("of one segment", "steps", default=320, low=1, high=_MOST)
    blocks_per_round: int = key("short blocks", "blocks", default=2, low=1, high=_MOST)
    max_blocks: int = key("of the whole trial", "blocks", default=6, low=1, high=_MOST)
    production_beside: bool = key(
        "production's own baseline runs are evidence, so that a shadow trial need not pay for them",
        default=True,
    )
    asked_quality_runs: str | None = key(
        "the policy's, where the trial runs in another mode", default=None, allowed=QUALITY_RUNS
    )
    runs_as_shadow_because: str | None = key("why it does", default=None)
    usd_per_block: float | None = key("of every arm", "USD", default=None, low=0.0)
    usd_per_quality_run: float | None = key("of one arm", "USD", default=None, low=0.0)
    spent_usd: float | None = key("so far", "USD", default=None, low=0.0)
    runs_at_start: float | None = key(
        "of production that remained when the trial began", "runs", default=None, low=0.0
    )
    spreads: Spreads = key("learned before the trial", default=ASSUMED)
    pairs: bool = key("whole runs of both arms follow each other in one job", default=False)


@dataclass(frozen=True)
class Evidence:
    """One workload's evidence, validated; ``controls`` tell effects apart and are not judged.

    ``content`` identifies the document that it was read from, independent of the order of its
    arms and runs. ``history_left_out`` past runs were scored on other evaluation examples.
    ``equivalence`` is None where nothing is known of the equivalence check. ``run_hours`` are
    those of production's runs, as the workload file says. ``on_top_of`` is the arm that is on while
    candidates are tried on top of it, empty where nothing is.
    """

    workload: str
    phase: str
    promoted: str | None
    policy: Policy
    quality: Quality
    history_wall_seconds: tuple[float, ...]
    runs_per_week: float | None
    runs_remaining: float | None
    arms: tuple[Arm, ...]
    plan: TrialPlan
    controls: tuple[Arm, ...] = ()
    content: str = ""
    history_left_out: int = 0
    equivalence: FaultTable | None = None
    run_hours: float | None = None
    on_top_of: str = ""

    @property
    def baseline(self) -> Arm:
        """The arm that everything is compared with."""
        return next(arm for arm in self.arms if arm.name == BASELINE)

    @property
    def candidates(self) -> tuple[Arm, ...]:
        """Every arm but the baseline and what is on, in the order of the document."""
        return tuple(arm for arm in self.arms if arm.name not in (BASELINE, self.on_top_of))

    @property
    def comparisons(self) -> tuple[tuple[str, Evidence], ...]:
        """The evidence, and of layers the same runs with what is on as the baseline.

        Each with what people read behind the candidate's name.
        """
        on = [replace(arm, name=BASELINE) for arm in self.arms if arm.name == self.on_top_of]
        arms = (*on, *self.candidates)
        layered = replace(self, arms=arms, on_top_of="", history_wall_seconds=())
        return ("", self), *((f" on top of {self.on_top_of}", layered) for _ in on)

    @property
    def sharing(self) -> int:
        """Candidates among which the error is shared: a probation is about one alone."""
        return 1 if self.phase == PROBATION else len(self.candidates)

    def arm(self, name: str) -> Arm | None:
        """The arm of that name, None when there is none."""
        return next((arm for arm in self.arms if arm.name == name), None)

    @property
    def promoted_arm(self) -> Arm:
        """The arm that a probation's evidence is about; the baseline where none is named."""
        return self.arm(self.promoted or "") or self.baseline

    @cached_property
    def segments(self) -> Segments:
        """The steady state of every segment whose block has a baseline."""
        medians = {
            run.block: median(run.step_seconds)
            for run in self.baseline.speed
            if run.finished and run.step_seconds
        }
        return {
            arm.name: {
                run.block: analyse(
                    run.step_seconds,
                    compile_seconds=run.compile_seconds,
                    baseline_median=medians[run.block],
                    full_run_steps=arm.steps_or_one,
                )
                if run.finished and run.block in medians
                else None
                for run in arm.speed
            }
            for arm in (*self.arms, *self.controls)
        }

    def steady_pairs(self, ours: Arm, theirs: Arm | None = None) -> list[tuple[Segment, Segment]]:
        """Their segment, the baseline's by default, and ours of each block with both."""
        own, other = self.segments[ours.name], self.segments[(theirs or self.baseline).name]
        return [
            (base, mine)
            for block in sorted(own.keys() & other.keys())
            if (mine := own[block]) is not None and (base := other[block]) is not None
        ]

    def runs_left(self, before: Arm | None = None) -> float | None:
        """Production runs still to come, now or when the first full run of ``before`` was made.

        Those that production has made for the trial are taken off what there was at its start.
        """
        at_start = self.plan.runs_at_start
        at_start = self.runs_remaining if at_start is None else at_start
        if at_start is None:
            return None
        own = before.quality if before else ()
        begun = min((run.order for run in own), default=math.inf)
        return max(at_start - sum(order < begun for order in self._made_by_production), 0.0)

    def with_runs_left(self, runs: float) -> Evidence:
        """The evidence as it would be with so many production runs still to come."""
        at_start = runs + len(self._made_by_production)
        return replace(self, plan=replace(self.plan, runs_at_start=at_start))

    @property
    def _made_by_production(self) -> list[int]:
        """Positions in time of the trial's full runs that production has made."""
        return [run.order for arm in self.arms for run in arm.quality if run.mode != SHADOW]

    def by(self, metric: Metric) -> Evidence:
        """The same runs by a guardrail or a signal, which takes the place of the first metric."""
        arms = tuple(
            replace(
                arm,
                quality=tuple(run.by(metric.metric) for run in arm.quality),
                probation=tuple(run.by(metric.metric) for run in arm.probation),
            )
            for arm in self.arms
        )
        return replace(self, quality=replace(self.quality, **vars(metric)), arms=arms)

    def oriented(self, values: Sequence[float]) -> list[float]:
        """Metrics turned so that higher is better."""
        sign = 1.0 if self.quality.goal == "maximize" else -1.0
        return [sign * value for value in values]

    def price_ratio(self, arm: Arm) -> float:
        """The arm's price per hour over the baseline's; 1 where either is unknown."""
        rate = self.baseline.usd_per_hour
        return 1.0 if rate is None or arm.usd_per_hour is None else arm.usd_per_hour / rate


def reported(value: Any) -> float | None:
    """A metric as a job or a document has it; None for what the judge cannot compute with."""
    is_usable = is_figure(value) and not isinstance(value, bool) and abs(value) <= LARGEST
    return float(value) if is_usable else None


def finished(runs: Sequence[FullRun]) -> list[FullRun]:
    """The runs that ended with a metric, in the order of time."""
    return sorted((run for run in runs if run.finished), key=attrgetter("order"))


def metrics(runs: Sequence[FullRun]) -> list[float]:
    """Final metrics of the runs that have one, in the order of time."""
    return without_none(run.metric for run in finished(runs))


def walls(runs: Sequence[FullRun]) -> list[float]:
    """Wall-clock seconds of the finished runs that recorded them, in the order of time."""
    return [run.wall_seconds for run in finished(runs) if run.wall_seconds]


def mean_or_none(values: Sequence[float]) -> float | None:
    """Their mean, None where there is nothing to average."""
    return mean(values) if values else None


def may_run_apart(candidate: Arm, baseline: Arm) -> bool:
    """Whether the candidate's own change explains other nodes than the baseline's."""
    return (
        bool(OWN_NODES & candidate.overrides.keys())
        or compiler_named(str(candidate.overrides.get("compiler"))).own_image
        or candidate.devices != baseline.devices
        or candidate.usd_per_hour != baseline.usd_per_hour
    )


def runs_apart(candidate: Arm, baseline: Arm) -> bool:
    """Whether the arms' blocks ran on different nodes: as recorded, else by the change."""
    nodes = {run.block: run.node for run in baseline.speed if run.node}
    pairs = [
        (run.node, nodes[run.block]) for run in candidate.speed if run.node and run.block in nodes
    ]
    if pairs:
        return any(ours != theirs for ours, theirs in pairs)
    return may_run_apart(candidate, baseline)
