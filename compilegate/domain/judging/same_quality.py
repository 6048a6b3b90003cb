"""Dollars to the same quality, for an arm that converges differently.

A candidate with another batch size or precision may need more steps, or fewer, to get as far.
An arm's curve is the point-wise median over its runs of their smoothed loss curves, so it ends
at the median of their final losses. The target is the loss that both arms reach: the higher of
the two medians of the finals. Single runs are not asked whether they get there: of the
baseline's own runs half never see their own median. An arm whose finals are significantly
higher,

    median(C) - median(B) > 3 s sqrt(1/n_B + 1/n_C),    s pooled over the arms,

does not reach the same quality; its dollars are None, the target is the baseline's median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compilegate.domain.arithmetic import mean, median, squares
from compilegate.domain.decision import SameQuality
from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.whole_job import usd_per_run

# Share of a curve's points over which a loss is averaged, and the fewest points of a curve.
SMOOTHED_SHARE = 0.1
LEAST_POINTS = 10
# Standard errors by which finals have to differ for one arm not to reach what the other does.
BEYOND_CHANCE = 3.0

Curve = list[tuple[float, float]]


def same_quality_figures(candidate: Arm, evidence: Evidence) -> SameQuality | None:
    """Steps and USD of both arms to the loss that both reach; None without loss curves."""
    baseline = evidence.baseline
    base, mine = _curves(baseline), _curves(candidate)
    if not base or not mine:
        return None
    middles = _middle(base), _middle(mine)
    ahead = middles[1][-1][1] <= middles[0][-1][1]
    last = 0 if ahead or _ends_higher(base, mine) else 1
    target = middles[last][-1][1]
    theirs, ours = (
        next((step for step, loss in curve if loss <= target), None) for curve in middles
    )
    return SameQuality(
        loss=target,
        loss_of=("baseline", "candidate")[last],
        steps_baseline=theirs,
        steps_candidate=ours,
        usd_baseline=_usd(theirs, base, usd_per_run(baseline, evidence)),
        usd_candidate=_usd(ours, mine, usd_per_run(candidate, evidence)),
    )


def _curves(arm: Arm) -> list[Curve]:
    """Smoothed (step, loss) of every finished full run that recorded a curve."""
    smoothed = []
    for run in finished(arm.full_runs):
        points = _points(run.record.get("loss_curve"))
        losses = [loss for _, loss in points]
        window = max(1, round(len(points) * SMOOTHED_SHARE))
        if len(points) >= LEAST_POINTS:
            smoothed.append(
                [
                    (step, mean(losses[max(0, end - window) : end]))
                    for end, (step, _) in enumerate(points, start=1)
                ]
            )
    return smoothed


def _points(curve: object) -> Curve:
    if not isinstance(curve, Sequence) or isinstance(curve, str):
        return []
    points = [
        (float(point[0]), float(point[1]))
        for point in curve
        if isinstance(point, Sequence)
        and len(point) >= 2
        and all(isinstance(x, int | float) and abs(x) < float("inf") for x in point[:2])
    ]
    return sorted(points)


def _middle(curves: Sequence[Curve]) -> Curve:
    """Median loss over runs at equal shares of the way, at the median of their steps there.

    Runs may end at different steps (one that stopped early) and record other steps.
    """
    points = min(len(curve) for curve in curves)
    shares = [i / (points - 1) for i in range(points)]
    at = [[curve[round(share * (len(curve) - 1))] for curve in curves] for share in shares]
    return [(median(step for step, _ in row), median(loss for _, loss in row)) for row in at]


def _ends_higher(base: Sequence[Curve], mine: Sequence[Curve]) -> bool:
    """Whether the candidate's final losses lie above the baseline's by more than chance."""
    finals = [[curve[-1][1] for curve in curves] for curves in (base, mine)]
    df = sum(len(losses) - 1 for losses in finals)
    if not df:
        return False
    spread = math.sqrt(math.fsum(squares(losses) for losses in finals) / df)
    error = spread * math.sqrt(math.fsum(1 / len(losses) for losses in finals))
    return median(finals[1]) - median(finals[0]) > BEYOND_CHANCE * error


def _usd(steps: float | None, curves: Sequence[Curve], price: float | None) -> float | None:
    """Price of a run, by the share of its steps that were needed."""
    last = median([curve[-1][0] for curve in curves])
    return None if steps is None or price is None or last <= 0 else price * steps / last
