"""Small scales under a figure: the interval against the limits, drawn without JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from compilegate.domain.formats import number, pair, ratio, significant
from compilegate.report.trial_report import TrialReport

LABEL_WIDTH = 17.0  # percent of the scale that a label takes


@dataclass(frozen=True)
class Mark:
    """A limit on the scale; ``at`` is percent of the width."""

    at: float
    text: str
    kind: str
    anchor: str = "middle"


@dataclass(frozen=True)
class BulletChart:
    """Positions are percent of the width; ``band`` is (left, width)."""

    point: float
    band: tuple[float, float] | None
    marks: Sequence[Mark]
    words: str


def speed_bullet(trial: TrialReport) -> BulletChart | None:
    """The speed-up between no change, reject and promote."""
    estimate, ends = trial.speedup, trial.speedup_interval
    reject, promote = trial.bar("reject_speedup"), trial.bar("promote_speedup")
    if estimate is None or reject is None or promote is None:
        return None
    limits = [
        (1.0, "1x", "plain"),
        (reject, ratio(reject), "bad"),
        (promote, ratio(promote), "good"),
    ]
    return _bullet(estimate, ends, sorted(limits), "Scale with the limits reject and promote")


def quality_bullet(trial: TrialReport) -> BulletChart | None:
    """The quality difference between the margin and equality."""
    estimate, margin = number(trial.quality.get("estimate")), number(trial.quality.get("margin"))
    if estimate is None or margin is None:
        return None
    limits = [(-margin, f"{significant(-margin)}", "bad"), (0.0, "equal", "plain")]
    return _bullet(estimate, pair(trial.quality.get("interval")), limits, "Scale with the margin")


def _bullet(
    estimate: float,
    ends: tuple[float, float] | None,
    limits: Sequence[tuple[float, str, str]],
    words: str,
) -> BulletChart:
    fixed = [estimate, *(value for value, _, _ in limits)]
    reach = max(fixed) - min(fixed) or abs(estimate) or 1.0
    # An interval far wider than the limits runs off the scale instead of hiding them.
    clipped = None
    if ends:
        clipped = (max(ends[0], min(fixed) - 1.5 * reach), min(ends[1], max(fixed) + 1.5 * reach))
    low, high = min(*fixed, *(clipped or ())), max(*fixed, *(clipped or ()))
    room = 0.08 * (high - low)
    low, width = low - room, high - low + 2 * room

    def place(value: float) -> float:
        return round(100 * (value - low) / width, 2)

    band = None
    if clipped:
        band = (place(clipped[0]), round(place(clipped[1]) - place(clipped[0]), 2))
    marks = _apart([Mark(place(value), text, kind) for value, text, kind in limits])
    return BulletChart(place(estimate), band, marks, words)


def _apart(marks: Sequence[Mark]) -> list[Mark]:
    """Labels pushed outwards where they would touch; a third one between them goes without."""
    places = [mark.at for mark in marks]
    if min(b - a for a, b in pairwise(places)) >= LABEL_WIDTH:
        return list(marks)
    first, *between, last = marks
    if last.at - first.at >= 2 * LABEL_WIDTH:
        return [first, *(replace(mark, text="") for mark in between), last]
    return [
        replace(first, anchor="end"),
        *(replace(mark, text="") for mark in between),
        replace(last, anchor="start"),
    ]
