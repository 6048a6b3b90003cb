"""Dollars to the same quality, for an arm that converges differently.

A candidate with another batch size or precision may need more steps, or fewer, to get where
the baseline ends. Steps are counted on the loss curves: the first at which the smoothed loss
is at or below what the baseline's runs end with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compilegate.domain.arithmetic import mean, median
from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.pricing import usd_per_run
from compilegate.domain.judging.speed import Segments

# Share of a curve's points over which a loss is averaged, and the fewest points of a curve.
SMOOTHED_SHARE = 0.1
LEAST_POINTS = 10

Curve = list[tuple[float, float]]


def same_quality_figures(
    candidate: Arm, evidence: Evidence, segments: Segments
) -> dict[str, Any] | None:
    """Steps and USD of both arms to the baseline's final loss; None without loss curves.

    ``usd_candidate`` is None when fewer than half of its runs get there.
    """
    base = _curves(evidence.baseline)
    mine = _curves(candidate)
    if not base or not mine:
        return None
    target = mean([curve[-1][1] for curve in base])
    steps = {"baseline": _steps_to(base, target), "candidate": _steps_to(mine, target)}
    return {
        "loss": target,
        "steps_baseline": steps["baseline"],
        "steps_candidate": steps["candidate"],
        "usd_baseline": _usd(steps["baseline"], evidence.baseline, base, evidence, segments),
        "usd_candidate": _usd(steps["candidate"], candidate, mine, evidence, segments),
    }


def _curves(arm: Arm) -> list[Curve]:
    """Smoothed (step, loss) of every finished full run that recorded a curve."""
    curves = [_points(run.record.get("loss_curve")) for run in finished(arm.full_runs)]
    return [_smoothed(curve) for curve in curves if len(curve) >= LEAST_POINTS]


def _points(curve: object) -> Curve:
    if not isinstance(curve, Sequence) or isinstance(curve, str):
        return []
    return [
        (float(point[0]), float(point[1]))
        for point in curve
        if isinstance(point, Sequence)
        and len(point) >= 2
        and all(isinstance(x, int | float) and abs(x) < float("inf") for x in point[:2])
    ]


def _smoothed(curve: Curve) -> Curve:
    window = max(1, round(len(curve) * SMOOTHED_SHARE))
    return [
        (step, mean([loss for _, loss in curve[max(0, i + 1 - window) : i + 1]]))
        for i, (step, _) in enumerate(curve)
    ]


def _steps_to(curves: Sequence[Curve], target: float) -> float | None:
    """Median over runs of the first step at or below ``target``; runs that never are, last."""
    reached = sorted(
        next((step for step, loss in curve if loss <= target), float("inf")) for curve in curves
    )
    middle = median(reached)
    return None if middle == float("inf") else middle


def _usd(
    steps: float | None, arm: Arm, curves: Sequence[Curve], evidence: Evidence, segments: Segments
) -> float | None:
    """Price of a run, by the share of its steps that were needed."""
    price, last = usd_per_run(arm, evidence, segments), mean([curve[-1][0] for curve in curves])
    return None if steps is None or price is None or last <= 0 else price * steps / last
