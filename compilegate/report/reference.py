"""What the judge compares the candidate's quality with: past runs at their weight, and today's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.arithmetic import mean
from compilegate.domain.formats import number, percent, plural, significant
from compilegate.domain.judging.evidence import PROBATION, FullRun, metrics
from compilegate.domain.judging.noninferiority import Comparison, Samples, compare
from compilegate.report.measured import Measured, MeasuredArm
from compilegate.report.model import Document


@dataclass(frozen=True)
class Reference:
    """``value`` in the metric's own unit; ``weight`` is what ``past`` runs count for today."""

    value: float
    past: int
    weight: float
    today: int

    @property
    def words(self) -> str:
        """``8 past runs worth 2.7, 1 of today``."""
        if not self.past:
            return plural(self.today, "baseline run")
        return f"{past_runs(self.past, self.weight)}, {self.today} of today"


def past_runs(past: int, weight: float) -> str:
    """How many past runs there are and what they count for."""
    return f"{plural(past, 'past run')} worth {significant(weight, 2)}"


def compared_runs(measured: Measured, arm: MeasuredArm) -> Sequence[FullRun]:
    """The full runs of the arm that the decision compares."""
    if measured.evidence.phase != PROBATION:
        return arm.arm.quality
    return arm.arm.full_runs if arm is measured.baseline else arm.arm.probation


def reference_of(measured: Measured | str, quality: Document) -> Reference | None:
    """The reference that the decision's difference is counted from; None where there is none."""
    if isinstance(measured, str):
        return None
    samples = _samples(measured)
    found = _as_decided(samples, quality)
    today, past = samples.baseline, samples.history
    if found is None:  # no spread or no candidate run: the plain mean of what is there
        values = [*past, *today]
        if not values:
            return None
        return Reference(_sign(measured) * mean(values), len(past), float(len(past)), len(today))
    value = mean(samples.candidate[: found.runs]) - found.difference
    return Reference(_sign(measured) * value, len(past), found.history_weight, len(today))


def _samples(measured: Measured) -> Samples:
    evidence = measured.evidence
    return Samples(
        candidate=evidence.oriented(metrics(compared_runs(measured, measured.lead))),
        baseline=evidence.oriented(metrics(compared_runs(measured, measured.baseline))),
        history=evidence.oriented(evidence.quality.history),
    )


def _as_decided(samples: Samples, quality: Document) -> Comparison | None:
    """The comparison whose difference the decision shows: up to its look, or of every run."""
    look, estimate = number(quality.get("look")), number(quality.get("estimate"))
    every = compare(samples)
    if look is None or estimate is None or every is None:
        return every
    looked = compare(samples.first(int(look)))
    found = [comparison for comparison in (looked, every) if comparison is not None]
    return min(found, key=lambda comparison: abs(comparison.difference - estimate))


def _sign(measured: Measured) -> float:
    return 1.0 if measured.evidence.quality.goal == "maximize" else -1.0


def confidence_words(quality: Document) -> str:
    """``98 % interval, holds at every look``; empty where there is no interval."""
    level = number(quality.get("confidence"))
    if level is None or not quality.get("interval"):
        return ""
    held = "" if number(quality.get("look")) is None else ", holds at every look"
    return f"{percent(level)} interval{held}"
