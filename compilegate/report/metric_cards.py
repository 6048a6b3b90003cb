"""The key figures with their bullet charts, each with its comparison or why it is unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import Verdict
from compilegate.domain.formats import interval, money, number, pair, plural, significant
from compilegate.report import statements
from compilegate.report.measured import Document, confidence_words, reference_of
from compilegate.report.text import Row, rows
from compilegate.report.trial_report import TrialReport

JUDGED_CARDS = 3  # speed, quality, saving
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
    """Drawn without JavaScript; positions are percent of the width, ``band`` is (left, width)."""

    point: float
    band: tuple[float, float] | None
    marks: Sequence[Mark]
    words: str


@dataclass(frozen=True)
class MetricCard:
    """A figure; ``note`` explains it, or says why ``value`` is a dash."""

    name: str
    value: str
    note: str
    bullet: BulletChart | None = None


def figures_of(cards: Sequence[MetricCard]) -> list[tuple[str, str, str]]:
    """Name, value and note of each, for a table."""
    return [(card.name, card.value, card.note) for card in cards]


def metric_cards(trial: TrialReport) -> list[MetricCard]:
    """What decides, then what it is worth; none for a failed trial, which decided nothing."""
    if trial.verdict is None:
        return []
    if trial.verdict is Verdict.INELIGIBLE:
        figures = trial.eligibility.get("economics")
        return [_card(row) for row in _economics(figures)] if figures else []
    quality = trial.judged.quality
    put = rows(
        "cards", trial=trial, reference=reference_of(trial.measured, quality),
        confidence=confidence_words(quality) if quality else "",
        bullets={"speed": _speed_bullet(trial), "quality": _quality_bullet(trial)},
    )  # fmt: skip
    return [_card(row) for row in put]


def _card(row: Row) -> MetricCard:
    name, value, bullet, note = row
    return MetricCard(name, value, note, bullet)


def _economics(figures: Document) -> list[Row]:
    """What eligibility alone says about money, before anything ran."""
    return rows(
        "economics", figures=defaultdict(lambda: None, figures), number=number, pair=pair,
        interval=interval, money=money, minutes=lambda minutes: f"{significant(minutes)} min",
        days=lambda days: plural(days, "day"),
    )  # fmt: skip


def _speed_bullet(trial: TrialReport) -> BulletChart | None:
    speed = trial.judged.speedup
    if speed is None or trial.thresholds is None:
        return None
    reject, _ = trial.thresholds  # promote is asked of the short blocks
    limits = [(1.0, "1x", "plain"), (reject, ratio(reject), "bad")]
    words = "Scale with equal time and the limit for whole jobs"
    return _bullet(speed.estimate, speed.interval, sorted(limits), words)


def _quality_bullet(trial: TrialReport) -> BulletChart | None:
    quality = trial.judged.quality
    if quality is None or quality.delta is None:
        return None
    limits = [(quality.limit, statements.with_sign(quality.limit), "bad"), (0.0, "equal", "plain")]
    return _bullet(quality.delta, quality.delta_interval, sorted(limits), "Scale with the margin")


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
    marks = _spread_labels([Mark(place(value), text, kind) for value, text, kind in limits])
    return BulletChart(place(estimate), band, marks, words)


def _spread_labels(marks: Sequence[Mark]) -> list[Mark]:
    """Labels pushed outwards where they would touch; a third one between them goes without."""
    if min(b.at - a.at for a, b in pairwise(marks)) >= LABEL_WIDTH:
        return list(marks)
    first, *between, last = marks
    if last.at - first.at < 2 * LABEL_WIDTH:
        first, last = replace(first, anchor="end"), replace(last, anchor="start")
    return [first, *(replace(mark, text="") for mark in between), last]
