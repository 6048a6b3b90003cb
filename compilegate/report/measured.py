"""The evidence as reports need it, through the same analysis as the judge's.

Also the reference that quality is compared with: the baseline's runs of the same weeks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from compilegate.domain.arithmetic import mean, ratio
from compilegate.domain.claims import ON
from compilegate.domain.decision import JUDGE_VERSION, SIGNS, Decision, QualityFigures, Speedup
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.formats import MINUS, number, percent, plural
from compilegate.domain.judging.evidence import (
    PROBATION,
    Arm,
    Evidence,
    FullRun,
    Segments,
    SpeedRun,
    metrics,
    runs_apart,
)
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import Look, Outcome
from compilegate.domain.judging.probation import replay_probation
from compilegate.domain.judging.quality import samples_of
from compilegate.domain.judging.speed import block_log_speedups
from compilegate.domain.judging.statistics import Comparison, Samples, compare
from compilegate.domain.judging.steady_state import Segment
from compilegate.domain.judging.validity import is_unapplied
from compilegate.domain.reasons import Reason, advice
from compilegate.domain.trial.silent_arms import MISSING
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """One arm's segment in one block; ``segment`` is None where it has no steady state."""

    run: SpeedRun
    segment: Segment | None

    @property
    def samples_per_second(self) -> float | None:
        """Throughput of the steady state."""
        if self.segment is None or not self.run.samples_per_step:
            return None
        return self.run.samples_per_step / self.segment.steady_step_seconds


@dataclass(frozen=True)
class MeasuredArm:
    """One arm with its blocks and full runs."""

    arm: Arm
    blocks: Mapping[int, Block]

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.arm.name

    @property
    def steady(self) -> list[Segment]:
        """The segments that have a steady state."""
        return [block.segment for block in self.blocks.values() if block.segment]


@dataclass(frozen=True)
class Measured:
    """All arms, the baseline first, and the chosen candidate next."""

    evidence: Evidence
    arms: Sequence[MeasuredArm]

    @property
    def baseline(self) -> MeasuredArm:
        """The arm that everything is compared with."""
        return self.arms[0]

    @property
    def candidates(self) -> Sequence[MeasuredArm]:
        """Every other arm."""
        return self.arms[1:]

    @property
    def lead(self) -> MeasuredArm:
        """The candidate that the decision is about, else the first."""
        return self.arms[1]

    def speedups(self, arm: MeasuredArm) -> dict[int, float]:
        """Full-run speed-up of ``arm`` in every block that both arms completed."""
        both = arm.blocks.keys() & self.baseline.blocks.keys()
        numbers = sorted(
            n for n in both if arm.blocks[n].segment and self.baseline.blocks[n].segment
        )
        logs = block_log_speedups(arm.arm, self.evidence) if numbers else []
        return {n: math.exp(log) for n, log in zip(numbers, logs, strict=True)}

    @property
    def price_ratio(self) -> float:
        """The lead's price per hour over the baseline's; 1 where either is unknown."""
        return self.evidence.price_ratio(self.lead.arm)

    @property
    def thresholds(self) -> tuple[float, float]:
        """Reject and promote as ratios of times, adjusted for the lead's price: dollars decide."""
        policy = self.evidence.policy
        return policy.reject_speedup * self.price_ratio, policy.promote_speedup * self.price_ratio

    @property
    def apart(self) -> bool:
        """Whether the lead's blocks ran on nodes of their own."""
        return runs_apart(self.lead.arm, self.baseline.arm)

    @property
    def has_speed(self) -> bool:
        """Whether any block was measured."""
        return any(arm.blocks for arm in self.arms)


def measure(document: Document | None, candidate: str | None) -> tuple[Measured | None, str]:
    """The measured arms, or None with a sentence that says why there are none."""
    if document is None:
        return None, "No job was started, so nothing was measured."
    try:
        evidence = read_evidence(document)
    except InvalidEvidenceError as error:
        return None, f"The evidence could not be read: {error}"
    others = sorted(evidence.candidates, key=lambda arm: arm.name != candidate)
    segments = _segments(evidence)
    arms = [
        MeasuredArm(
            arm, {run.block: Block(run, segments[arm.name].get(run.block)) for run in arm.speed}
        )
        for arm in (evidence.baseline, *others)
    ]
    return Measured(evidence, arms), ""


def _segments(evidence: Evidence) -> Segments:
    """A broken segment does not prevent the report: the verdict says what is wrong."""
    steps = (x for arm in evidence.arms for run in arm.speed for x in run.step_seconds)
    if all(math.isfinite(x) and x > 0 for x in steps):
        return evidence.segments
    return {arm.name: {} for arm in (*evidence.arms, *evidence.controls)}


@dataclass(frozen=True)
class Reference:
    """What the candidate's runs are compared with; ``value`` in the metric's own unit."""

    value: float
    words: str


def compared_runs(measured: Measured, arm: MeasuredArm) -> Sequence[FullRun]:
    """The full runs of the arm that the decision compares."""
    if measured.evidence.phase != PROBATION:
        return arm.arm.quality
    return arm.arm.full_runs if arm is measured.baseline else arm.arm.probation


def reference_of(measured: Measured | None, quality: QualityFigures | None) -> Reference | None:
    """The reference that the decision's difference is counted from; None where there is none."""
    if measured is None:
        return None
    samples, sign = _samples(measured), SIGNS[measured.evidence.quality.goal]
    comparison = _as_decided(samples, quality)
    if comparison is None:  # no spread or no candidate run: the plain mean of what is there
        values = samples.baseline or samples.history
        if not values:
            return None
        named = "baseline run" if samples.baseline else "past run"
        return Reference(
            SIGNS[measured.evidence.quality.goal] * mean(values), plural(len(values), named)
        )
    value = mean(samples.candidate[: comparison.runs]) - comparison.difference
    words = plural(comparison.reference_runs, "baseline run")
    return Reference(sign * value, words)


def _samples(measured: Measured) -> Samples:
    evidence = measured.evidence
    if evidence.phase != PROBATION:
        return samples_of(measured.lead.arm, evidence)
    return Samples(
        candidate=evidence.oriented(metrics(compared_runs(measured, measured.lead))),
        baseline=evidence.oriented(metrics(compared_runs(measured, measured.baseline))),
        history=evidence.oriented(evidence.quality.history),
    )


def _as_decided(samples: Samples, quality: QualityFigures | None) -> Comparison | None:
    """The comparison whose difference the decision shows: up to its look, or of every run."""
    estimate, every = quality.estimate if quality else None, compare(samples)
    if quality is None or quality.look is None or estimate is None or every is None:
        return every
    at_look = compare(samples.first(quality.look)) or every
    return min((at_look, every), key=lambda comparison: abs(comparison.difference - estimate))


def confidence_words(quality: QualityFigures) -> str:
    """``98 % interval, holds at every look``; empty where there is no interval."""
    if quality.confidence is None or quality.interval is None:
        return ""
    held = "" if quality.look is None else ", holds at every look"
    return f"{percent(quality.confidence)} interval{held}"


# What runs recorded of themselves beside what decides: price, start, reason, loss.

Run = SpeedRun | FullRun


@dataclass(frozen=True)
class LossPoint:
    """The loss at a step; ``seconds`` since the first one began, None where not recorded."""

    step: int
    loss: float | None
    seconds: float | None


def usd_of(run: Run) -> float | None:
    """What it cost."""
    return number(run.record.get("usd"))


def began_at(run: Run) -> float | None:
    """When it began, in epoch seconds."""
    return number(run.record.get("started_at"))


def reason_of(run: Run) -> str:
    """What it said of its end, empty where it said nothing."""
    return str(run.record.get("reason") or "")


def loss_curve(run: FullRun) -> list[LossPoint]:
    """Its loss in the order of the steps, each once; empty where it recorded none."""
    points = {point.step: point for point in _points(run.record.get("loss_curve"))}
    return [points[step] for step in sorted(points)]


def _points(curve: object) -> Iterator[LossPoint]:
    for point in curve if isinstance(curve, Sequence) else ():
        if not isinstance(point, Sequence) or len(point) < 2:
            continue
        step = number(point[0])
        if step is not None:
            seconds = number(point[2]) if len(point) > 2 else None
            yield LossPoint(int(step), number(point[1]), seconds)


# A decision's reasons as people read them: a failure comes first, with its cause and what helps.
#
# The judge's words stay as recorded; what the jobs said of a failure stands behind them. Where
# whole jobs speak against a candidate whose short blocks were fast, the blocks' figure is called
# theirs; so is what they rule out, which the whole job's interval beside it may contain.

OF_SPEED = ("speedup_proven", "full_run_disagrees")
RULED_OUT = "the short blocks rule out an average of "
# Pieces of recorded messages, and how they are read.
READ_AS = (
    (", significantly below the required ", f"; {RULED_OUT}"),
    ("but significantly below the required ", f"but {RULED_OUT}"),
    ("at a difference of -", f"at a difference of {MINUS}"),
)
CRASHED = ("candidate_crashed", "baseline_failed")
WAITS_FOR_BLOCKS = "speed_unsettled"
NOT_APPLIED = "treatment_not_applied"
FAILURES = frozenset({
    *CRASHED, NOT_APPLIED, "arms_differ", "arms_continue_each_other", "numerics_wrong",
    "runs_repeated", "unequal_initial_loss", "unequal_initial_weights", "unequal_work",
    "evaluation_sets_differ",
    "evidence_invalid", "evidence_missing", "clock_implausible", "evidence_overwritten",
    "request_refused", "quota_too_low", "flag_too_large",
})  # fmt: skip


def shown_reasons(
    decision: Decision,
    evidence: Evidence | None,
    *,
    silent: Mapping[str, Reason] = MappingProxyType({}),
) -> tuple[Reason, ...]:
    """The deciding reason first, then failures, then the others, in the judge's order.

    A candidate of ``silent`` was given up, for the reason that stands there: the judge, who saw no
    blocks of it, waited for them.
    """
    ended = {reason.arm for reason in decision.reasons if reason.code == MISSING}
    given_up = {arm: reason for arm, reason in silent.items() if arm not in ended}
    reasons = [
        given_up.get(str(reason.arm), reason) if reason.code == WAITS_FOR_BLOCKS else reason
        for reason in decision.reasons
    ]
    shown = [_shown(reason, decision, evidence) for reason in reasons]
    first, others = shown[:1], shown[1:]
    return (*first, *sorted(others, key=lambda reason: reason.code not in FAILURES))


def _shown(reason: Reason, decision: Decision, evidence: Evidence | None) -> Reason:
    if reason.code in OF_SPEED and decision.verdict not in ON and reason.arm == decision.candidate:
        return _of_speed(reason, decision.speedup, evidence)
    if reason.code not in FAILURES:
        return replace(reason, message=_as_read(reason.message))
    cause = _cause(reason, evidence) if evidence else ""
    message = f"{reason.message.rstrip('.')} ({cause})" if cause else reason.message
    return replace(reason, message=message, fix=reason.fix or advice(reason.code))


def _as_read(text: str) -> str:
    for recorded, read in READ_AS:
        text = text.replace(recorded, read)
    return text


def _of_speed(reason: Reason, speed: Speedup | None, evidence: Evidence | None) -> Reason:
    """The gate's proof is of short blocks, whatever full runs say; both agree in a promotion."""
    if not speed or not speed.full_runs or not speed.predicted or speed.lower_bound is None:
        return reason
    blocks = f"the short blocks alone predict {ratio(speed.predicted.estimate)}"
    if reason.code == "speedup_proven":
        proven = f"and prove more than {ratio(speed.lower_bound)}; whole jobs decide"
        return replace(reason, message=f"{reason.arm}: {blocks} {proven}")
    arm = evidence and evidence.arm(str(reason.arm))
    if not evidence or not arm:
        return reason
    bar = ratio(evidence.policy.reject_speedup * evidence.price_ratio(arm))
    whole = f"whole jobs, start-up and evaluation included, are {statements.speedup(speed)}"
    return replace(reason, message=f"{reason.arm}: {whole}, required is {bar}; {blocks}")


def _cause(reason: Reason, evidence: Evidence) -> str:
    """What the first run that failed said; of one that ran without the change its compiler."""
    arm = evidence.arm(reason.arm or BASELINE)
    if arm is None:
        return ""
    for run in arm.runs:
        said = "" if run.finished else reason_of(run)
        if reason.code == NOT_APPLIED:
            compiler = run.record.get("compiler")
            proof = str(compiler.get("proof") or "") if isinstance(compiler, Mapping) else ""
            said = proof if run.finished and is_unapplied(run, arm) else ""
        if said:
            return f"{_place(run)}: {said.rstrip('.')}"
    return ""


def _place(run: SpeedRun | FullRun) -> str:
    if isinstance(run, SpeedRun):
        return f"short block {run.block}"
    return "full run" if run.seed is None else f"full run with seed {run.seed}"


# The check that confirmed an alarm, repeated from the evidence: the figure that decided a revert.
#
# A decision says it only in its reason's words; its own figures are over all production runs.


@dataclass(frozen=True)
class ConfirmedFall:
    """What the runs that checked the alarm showed; one of the two figures is None.

    ``delta`` is the candidate minus the baseline in the metric's own unit, ``speedup`` the ratio of
    their full jobs' times.
    """

    look: Look
    delta: float | None = None
    speedup: float | None = None

    @property
    def words(self) -> str:
        """``Δ +0.054 in the 3 runs of each arm that checked the alarm``."""
        fall = self.look.fall
        each = "each arm" if fall.theirs == fall.ours else "the candidate"
        size = statements.delta(self.delta) if self.speedup is None else ratio(self.speedup)
        return f"{size} in the {plural(fall.ours, 'run')} of {each} that checked the alarm"


def confirmed_fall(decision: Decision, evidence: Evidence) -> ConfirmedFall | None:
    """The fall that turned the candidate off; None where no check did, or another judge's."""
    if decision.judge_version != JUDGE_VERSION or evidence.phase != PROBATION:
        return None
    try:
        finding = replay_probation(evidence, lambda *_: None)
    except InvalidEvidenceError:
        return None
    if tuple(reason.code for reason in finding.reasons) != decision.codes:
        return None
    confirmed = [one for one in finding.checks if one.look.outcome is Outcome.REVERT]
    if not confirmed:
        return None
    deciding = confirmed[-1]
    if deciding.monitor == "speed":
        return ConfirmedFall(deciding.look, speedup=math.exp(-deciding.look.fall.size))
    delta = -deciding.look.fall.size * SIGNS[evidence.quality.goal]
    return ConfirmedFall(deciding.look, delta=delta)
