"""The decision: verdict, reasons and what to do with the flag (docs/contracts.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from compilegate.domain.codec import OMITTED, rounded, write
from compilegate.domain.economics import AtLength
from compilegate.domain.reasons import Reason

# Version of the judge (domain/judging/judge.py), which every decision names. It is defined here so
# that a step which only refuses a trial does not load the judge.
JUDGE_VERSION = "3.0.0"


class Verdict(StrEnum):
    """Closed set of outcomes of a trial."""

    PROMOTE = "promote"
    STAY_OFF = "stay_off"
    REVERT = "revert"
    PERMANENT = "permanent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INELIGIBLE = "ineligible"
    CONTINUE = "continue"


class FlagAction(StrEnum):
    """What a decision does to the workload's flag."""

    ENABLE = "enable"
    DISABLE = "disable"
    KEEP = "keep"


# Only a proven promotion switches on; evidence that proves nothing leaves things as they are.
FLAG_ACTIONS: Mapping[Verdict, FlagAction] = {
    Verdict.PROMOTE: FlagAction.ENABLE,
    Verdict.PERMANENT: FlagAction.ENABLE,
    Verdict.STAY_OFF: FlagAction.DISABLE,
    Verdict.REVERT: FlagAction.DISABLE,
    Verdict.INELIGIBLE: FlagAction.DISABLE,
    Verdict.INCONCLUSIVE: FlagAction.KEEP,
    Verdict.INVALID: FlagAction.KEEP,
    Verdict.CONTINUE: FlagAction.KEEP,
}

EXIT_CODES: Mapping[Verdict, int] = {
    Verdict.PROMOTE: 0,
    Verdict.PERMANENT: 0,
    Verdict.STAY_OFF: 10,
    Verdict.INELIGIBLE: 10,
    Verdict.INCONCLUSIVE: 11,
    Verdict.CONTINUE: 11,
    Verdict.REVERT: 12,
    Verdict.INVALID: 13,
}


# Who makes the full runs of a step: the trial itself, or production as it trains anyway.
SHADOW, CANARY = "shadow", "canary"


@dataclass(frozen=True)
class SpeedStep:
    """More speed blocks of these arms; ``usd`` is None where no price is known."""

    stage: str = field(default="speed", init=False)
    block: int
    blocks: int
    steps: int
    arms: tuple[str, ...]
    usd: float | None
    why: str


@dataclass(frozen=True)
class RequestedFullRun:
    """One full run of an arm, with its seed."""

    arm: str
    seed: int


@dataclass(frozen=True)
class QualityStep:
    """More full runs, made by the trial itself or as canary runs by production."""

    stage: str = field(default="quality", init=False)
    mode: str
    runs: tuple[RequestedFullRun, ...]
    usd: float | None
    why: str

    @property
    def arms(self) -> tuple[str, ...]:
        """The arm of each run."""
        return tuple(run.arm for run in self.runs)

    @property
    def is_canary(self) -> bool:
        """Whether production makes the runs."""
        return self.mode == CANARY


@dataclass(frozen=True)
class RequestedArm:
    """The arm of a production run; ``confirm`` where it checks an alarm."""

    arm: str
    confirm: bool


@dataclass(frozen=True)
class ProbationStep:
    """The next production runs."""

    stage: str = field(default="probation", init=False)
    runs: tuple[RequestedArm, ...]
    why: str

    @property
    def arms(self) -> tuple[str, ...]:
        """The arm of each run."""
        return tuple(run.arm for run in self.runs)

    @property
    def confirm(self) -> bool:
        """Whether the runs check an alarm."""
        return any(run.confirm for run in self.runs)


# Code of a signal that did not hold: a person decides whether the flag is turned on.
SIGNAL = "signal_open"
# The judge turns differences so that higher is better; times this, they are the metric's own.
SIGNS = {"maximize": 1.0, "minimize": -1.0}
NextStep = SpeedStep | QualityStep | ProbationStep
Interval = tuple[float, float]


@dataclass(frozen=True)
class ComparedRuns:
    """How many runs of each side a comparison rests on."""

    baseline: int
    candidate: int


@dataclass(frozen=True)
class QualityRuns(ComparedRuns):
    """With those of the past that count for the baseline."""

    history: int


@dataclass(frozen=True)
class SpeedSource:
    """What short blocks or full runs say of a whole job's speed-up, each for themselves."""

    estimate: float
    interval: Interval
    runs: ComparedRuns


@dataclass(frozen=True)
class Speedup:
    """Speed-up of whole jobs, a ratio of times, from ``blocks`` and timed ``full_runs``.

    ``lower_bound`` is what the blocks alone prove at the gate's level, None before two blocks.
    ``predicted`` is by short blocks, ``measured`` by full runs, ``weight`` the share of the latter,
    ``disagreement`` how far a prediction may be off, a logarithm. ``target`` is the metric's value
    the times to which were compared, None where those of whole jobs were.
    """

    estimate: float
    interval: Interval
    confidence: float
    lower_bound: float | None
    blocks: int
    full_runs: int
    predicted: SpeedSource | None
    measured: SpeedSource | None
    weight: float
    disagreement: float
    target: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class IdenticalRuns:
    """Pairs of runs that ended with the same weights: different ``models``, and pairs that did not.

    ``proven`` where they prove that both arms train the same.
    """

    models: int
    unequal: int
    proven: bool


@dataclass(frozen=True)
class LargerEvaluation:
    """The spread on so many examples, and the runs of each arm that it would take, if any do."""

    examples: int
    spread: float
    runs: int | None


@dataclass(frozen=True)
class EvaluationFinding:
    """Why the spread between runs was not split."""

    finding: str


@dataclass(frozen=True)
class EvaluationSplit(EvaluationFinding):
    """What the choice of evaluation examples adds to the spread between runs, and training itself.

    Sizes are in examples, spreads in the metric's unit. None of the runs would be enough where
    ``runs_needed`` is None; no larger set is worth it where ``best_examples`` is.
    """

    examples: int
    spread: float
    spread_of_evaluation: float
    spread_of_training: float
    spread_of_training_interval: tuple[float | None, float | None]
    spread_of_training_expected: float
    runs_needed: int | None
    wanted_examples: int | None
    best_examples: int | None
    runs_saved: int | None
    usd_saved: float | None
    larger: tuple[LargerEvaluation, ...]


@dataclass(frozen=True)
class FurthestApart:
    """Of all that the equivalence check compared the part closest to, or beyond, its bound.

    ``ratio`` is the compiled model's error over the uncompiled one's, None where it is not a
    number; ``where`` names the tensor.
    """

    part: str
    where: str
    ratio: float | None
    bound: float

    @property
    def share_of_bound(self) -> float:
        """Above 1 it is more than rounding; infinite where it is not a number or none passes."""
        return self.ratio / self.bound if self.bound and self.ratio is not None else math.inf

    @property
    def words(self) -> str:
        """For people."""
        ratio = "not a number" if self.ratio is None else f"{self.ratio:.3g} times eager's"
        text = f"the error of {self.part} ({self.where}) is {ratio}"
        return f"{text}, and its bound is {self.bound:g}"


@dataclass(frozen=True)
class EquivalenceFigures:
    """The proof of quality beside full runs: compiled training is eager training up to rounding.

    ``state`` is passed, failed or unexamined, which ``reason`` explains. A harmful candidate passes
    with a chance of at most ``rho``, if a harmful change that a compiler makes is like the faults
    of the catalogue, of which the check missed ``missed`` of ``faults`` in this class of jobs on
    ``date``. ``level`` is the chance with which full runs may then pass one that loses the margin.
    ``unseen`` are the parts that were not looked at. Without a table ``job_class`` is None.
    """

    state: str
    reason: str
    rho: float
    level: float
    job_class: str | None = None
    faults: int | None = None
    missed: int | None = None
    date: str | None = None
    worst: FurthestApart | None = None
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class QualityFigures:
    """Quality difference, candidate minus baseline, turned so that higher is better.

    ``identical`` is None where no two runs are a pair, ``evaluation`` where none recorded outcomes,
    ``equivalence`` where the evidence has no table of faults. ``guardrails`` and ``signals`` are
    figures of the further metrics, whose gate came to ``outcome`` (judging/quality.py).
    ``delta``, ``delta_interval`` and ``limit`` are in the metric's own direction; a loss of the
    margin reaches the limit.
    """

    metric: str
    goal: str
    estimate: float | None
    margin: float
    spread: float | None
    runs: QualityRuns
    interval: Interval | None = None
    confidence: float | None = None
    look: int | None = None
    provable_margin: float | None = None
    runs_needed: int | None = None
    identical: IdenticalRuns | None = field(default=None, metadata=OMITTED)
    evaluation: EvaluationSplit | EvaluationFinding | None = field(default=None, metadata=OMITTED)
    equivalence: EquivalenceFigures | None = field(default=None, metadata=OMITTED)
    outcome: str | None = field(default=None, metadata=OMITTED)
    guardrails: tuple[QualityFigures, ...] = field(default=(), metadata=OMITTED)
    signals: tuple[QualityFigures, ...] = field(default=(), metadata=OMITTED)

    @property
    def delta(self) -> float | None:
        """The difference."""
        return None if self.estimate is None else self._own(self.estimate)

    @property
    def delta_interval(self) -> Interval | None:
        """Its interval."""
        if self.interval is None:
            return None
        low, high = sorted(map(self._own, self.interval))
        return low, high

    @property
    def limit(self) -> float:
        """The difference that has to be ruled out."""
        return self._own(-self.margin)

    def _own(self, turned: float) -> float:
        return SIGNS[self.goal] * turned + 0.0  # no negative zero


@dataclass(frozen=True)
class SameQuality:
    """Steps and USD of both arms to the loss that both reach; ``loss_of`` is the arm that ends so.

    Steps and USD of the candidate are None where it does not get to what the baseline reaches.
    """

    loss: float
    loss_of: str
    steps_baseline: float | None
    steps_candidate: float | None
    usd_baseline: float | None
    usd_candidate: float | None


@dataclass(frozen=True)
class SavingFigures:
    """What whole jobs' speed-up is worth, in USD; ``payback_runs`` are production runs.

    ``break_even_run_minutes`` is the length of a baseline run from which the candidate is faster.
    """

    usd_per_run: float
    interval_usd_per_run: Interval | None
    usd_per_run_baseline: float
    usd_per_year: float
    interval_usd_per_year: Interval | None
    trial_usd: float | None
    payback_runs: float | None
    break_even_run_minutes: float | None
    same_quality: SameQuality | None


@dataclass(frozen=True)
class ArmFigures:
    """One arm's measured figures; throughput in samples per second of steady state."""

    name: str
    samples_per_second: float | None
    samples_per_second_interval: Interval | None
    step_seconds_median: float | None
    warm_up_steps: int | None
    compile_seconds_cold: float | None
    compile_seconds_warm: float | None
    recompiles: float | None
    graph_breaks: float | None
    graphs: float | None
    peak_memory_gib: float | None
    usd_per_hour: float | None
    usd_per_1000_samples: float | None
    usd_per_run: float | None
    metric_mean: float | None
    metric_sd: float | None
    runs: int
    failed_runs: int


@dataclass(frozen=True)
class ControlFigures(ArmFigures):
    """A control's own figures, and full-run speed-ups against both neighbours.

    ``speedup``: the control over the baseline. ``compiler_speedup``: the candidate over the
    control, from the blocks that all three completed. None where no block tells; ``reason``
    says why the control was not measured.
    """

    candidate: str
    blocks: int
    speedup: float | None
    compiler_speedup: float | None
    reason: str | None


@dataclass(frozen=True)
class LayerGain:
    """How many times faster whole jobs are than those of ``on``, the arm that is on."""

    on: str
    estimate: float
    interval: Interval


@dataclass(frozen=True)
class DecidedFlag:
    """What a recorded decision does to the flag; ``name`` is the parameter's full name."""

    name: str
    action: FlagAction


@dataclass(frozen=True)
class Decision:
    """The judge's decision on one evidence document; intervals are (low, high).

    ``speedup``, ``quality`` and ``saving`` are the candidate's, None where they were not judged,
    ``arms`` none where nothing was measured. ``next`` is None where the trial has ended. ``flag``
    is None until the decision is recorded. ``controls`` tell effects apart and decide nothing;
    they are shown only where there are any. ``scheduled`` is the speed-up of a run of the
    workload's ``run_hours``, where those are far from the hours that were measured. ``layer`` is
    what a candidate gains on what is on, where it was tried on top of that.
    """

    workload: str
    decision_id: str
    judge_version: str
    stage: str
    verdict: Verdict
    candidate: str | None
    reasons: tuple[Reason, ...]
    speedup: Speedup | None = None
    quality: QualityFigures | None = None
    arms: tuple[ArmFigures, ...] = ()
    saving: SavingFigures | None = None
    next: NextStep | None = None
    flag: DecidedFlag | None = None
    controls: tuple[ControlFigures, ...] = field(default=(), metadata=OMITTED)
    scheduled: AtLength | None = field(default=None, metadata=OMITTED)
    layer: LayerGain | None = field(default=None, metadata=OMITTED)

    @classmethod
    def of_this_judge(
        cls,
        workload: str,
        decision_id: str,
        stage: str,
        verdict: Verdict,
        reasons: Iterable[Reason],
        *,
        candidate: str | None = None,
        **figures: Any,
    ) -> Self:
        """What is decided now, each reason once."""
        return cls(
            workload, decision_id, JUDGE_VERSION, stage, verdict, candidate,
            tuple(dict.fromkeys(reasons)), **figures,
        )  # fmt: skip

    @property
    def flag_action(self) -> FlagAction:
        """What this decision does to the flag."""
        return self.flag.action if self.flag else FLAG_ACTIONS[self.verdict]

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the reasons."""
        return tuple(reason.code for reason in self.reasons)

    @property
    def messages(self) -> tuple[str, ...]:
        """Why, for a person."""
        return tuple(reason.message for reason in self.reasons)

    def to_dict(self, flag_name: str) -> dict[str, Any]:
        """The document of the contract; ``flag_name`` is the parameter's full name."""
        recorded = replace(self, flag=DecidedFlag(flag_name, self.flag_action))
        document: dict[str, Any] = rounded({"schema": 1, **write(recorded)})
        return document
