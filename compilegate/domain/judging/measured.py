"""The evidence as reports show it, through the same analysis as the judge's.

Also the reference that quality is compared with: the baseline's runs of the same weeks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.decision import JUDGE_VERSION, SIGNS, Decision, QualityFigures
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.formats import plural
from compilegate.domain.judging.comparison import Comparison, Samples, compare, samples_of
from compilegate.domain.judging.evidence import (
    PROBATION,
    Arm,
    Evidence,
    FullRun,
    Segments,
    SpeedRun,
    mean_or_none,
    metrics,
    runs_apart,
)
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import Look, Outcome
from compilegate.domain.judging.probation import replay_probation
from compilegate.domain.judging.speed import block_log_speedups
from compilegate.domain.judging.steady_state import Segment
from compilegate.domain.judging.validity import is_unapplied


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
class Ended:
    """A run that is no result, and what is said of its end."""

    run: SpeedRun | FullRun
    said: str


@dataclass(frozen=True)
class MeasuredArm:
    """One arm with its blocks and full runs.

    ``compared`` are the full runs that the decision compares; ``speedups`` are over the whole
    job, by block, of every block that this arm and the baseline completed.
    """

    arm: Arm
    blocks: Mapping[int, Block]
    compared: Sequence[FullRun]
    speedups: Mapping[int, float]

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.arm.name

    @property
    def steady(self) -> list[Segment]:
        """The segments that have a steady state."""
        return [block.segment for block in self.blocks.values() if block.segment]

    @property
    def steady_step_seconds(self) -> float | None:
        """The step of its steady state, the mean over blocks; None without any."""
        return mean_or_none([segment.steady_step_seconds for segment in self.steady])

    @property
    def failed(self) -> Ended | None:
        """The first run that failed and said why."""
        failed = (run for run in self.arm.runs if not run.finished and run.reason)
        return next((Ended(run, run.reason) for run in failed), None)

    @property
    def unapplied(self) -> Ended | None:
        """The first run that ended without the arm's change, with what its compiler said."""
        for run in self.arm.runs:
            if run.finished and is_unapplied(run, self.arm):
                compiler = run.record.get("compiler")
                proof = compiler.get("proof") if isinstance(compiler, Mapping) else None
                if proof:
                    return Ended(run, str(proof))
        return None


@dataclass(frozen=True)
class Reference:
    """What the candidate's runs are compared with; ``value`` in the metric's own unit."""

    value: float
    words: str


@dataclass(frozen=True)
class Measured:
    """All arms, the baseline first, and the candidate of the decision next.

    ``judged`` are the decision's figures of quality, None where it has none.
    """

    evidence: Evidence
    arms: Sequence[MeasuredArm]
    judged: QualityFigures | None

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

    @property
    def price_ratio(self) -> float:
        """The lead's price per hour over the baseline's; 1 where either is unknown."""
        return self.evidence.price_ratio(self.lead.arm)

    @property
    def thresholds(self) -> tuple[float, float]:
        """What must be proven and what the mean must be, as ratios of times: dollars decide."""
        policy, price = self.evidence.policy, self.price_ratio
        return policy.min_proven_speedup * price, policy.min_mean_speedup * price

    @property
    def apart(self) -> bool:
        """Whether the lead's blocks ran on nodes of their own."""
        return runs_apart(self.lead.arm, self.baseline.arm)

    @property
    def has_speed(self) -> bool:
        """Whether any block was measured."""
        return any(arm.blocks for arm in self.arms)

    @cached_property
    def reference(self) -> Reference | None:
        """The reference that the decision's difference is counted from; None without one."""
        samples, sign = _samples(self), SIGNS[self.evidence.quality.goal]
        comparison = _as_decided(samples, self.judged)
        if comparison is None:  # no spread or no candidate run: the plain mean of what is there
            values = samples.baseline or samples.history
            if not values:
                return None
            named = "baseline run" if samples.baseline else "past run"
            return Reference(sign * mean(values), plural(len(values), named))
        value = mean(samples.candidate[: comparison.runs]) - comparison.difference
        words = plural(comparison.reference_runs, "baseline run")
        return Reference(sign * value, words)


def measure(document: Mapping[str, Any] | None, decision: Decision) -> tuple[Measured | None, str]:
    """The measured arms, or None with a sentence that says why there are none."""
    if document is None:
        return None, "No job was started, so nothing was measured."
    try:
        evidence = read_evidence(document)
    except InvalidEvidenceError as error:
        return None, f"The evidence could not be read: {error}"
    others = sorted(evidence.candidates, key=lambda arm: arm.name != decision.candidate)
    segments = _segments(evidence)
    arms = [
        MeasuredArm(
            arm,
            {run.block: Block(run, segments[arm.name].get(run.block)) for run in arm.speed},
            _compared(arm, evidence),
            _speedups(arm, evidence, segments),
        )
        for arm in (evidence.baseline, *others)
    ]
    return Measured(evidence, arms, decision.quality), ""


def _compared(arm: Arm, evidence: Evidence) -> Sequence[FullRun]:
    if evidence.phase != PROBATION:
        return arm.quality
    return arm.full_runs if arm is evidence.baseline else arm.probation


def _speedups(arm: Arm, evidence: Evidence, segments: Segments) -> Mapping[int, float]:
    ours, theirs = segments[arm.name], segments[evidence.baseline.name]
    numbers = sorted(n for n in ours if ours[n] and theirs[n])
    logs = block_log_speedups(arm, evidence) if numbers else []
    return {n: math.exp(log) for n, log in zip(numbers, logs, strict=True)}


def _segments(evidence: Evidence) -> Segments:
    """A broken segment does not prevent the report: the verdict says what is wrong."""
    steps = (x for arm in evidence.arms for run in arm.speed for x in run.step_seconds)
    if all(x > 0 for x in steps):
        return evidence.segments
    return {arm.name: {} for arm in evidence.arms}


def _samples(measured: Measured) -> Samples:
    evidence = measured.evidence
    if evidence.phase != PROBATION:
        return samples_of(measured.lead.arm, evidence)
    return Samples(
        candidate=evidence.oriented(metrics(measured.lead.compared)),
        baseline=evidence.oriented(metrics(measured.baseline.compared)),
        history=evidence.oriented(evidence.quality.history),
    )


def _as_decided(samples: Samples, quality: QualityFigures | None) -> Comparison | None:
    """The comparison whose difference the decision shows: up to its look, or of every run."""
    estimate, every = quality.estimate if quality else None, compare(samples)
    if quality is None or quality.look is None or estimate is None or every is None:
        return every
    at_look = compare(samples.first(quality.look)) or every
    return min((at_look, every), key=lambda comparison: abs(comparison.difference - estimate))


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
    # What a guardrail showed is in its reason.
    if not confirmed or confirmed[-1].monitor not in ("quality", "speed"):
        return None
    deciding = confirmed[-1]
    if deciding.monitor == "speed":
        return ConfirmedFall(deciding.look, speedup=math.exp(-deciding.look.fall.size))
    delta = -deciding.look.fall.size * SIGNS[evidence.quality.goal]
    return ConfirmedFall(deciding.look, delta=delta)
