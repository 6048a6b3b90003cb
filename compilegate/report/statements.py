"""A decision's figures as text: the same number in the same words on every screen and page.

The speed-up is the judge's one estimate of whole jobs, with its interval. What short blocks alone
say is called so. Differences of quality are in the metric's own unit, candidate minus baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import NO_AMOUNT, MoneyClaim, QualityClaim, SpeedClaim
from compilegate.domain.formats import (
    UNKNOWN,
    count,
    interval,
    money,
    number,
    percent,
    shown,
    signed,
    significant,
)  # fmt: skip
from compilegate.report.figures import DecisionFigures, Interval, QualityFigures, SpeedFigures

QUALITY_WORDS = {
    QualityClaim.HELD: "no regression",
    QualityClaim.WORSE: "regression",
    QualityClaim.OPEN: "not proven",
}
# A confirmed alarm was decided by fewer runs than the difference is of.
IN_CHECK = "in the runs that checked the alarm"
OF_ALL = "all production runs: "
BETTER = {"maximize": "higher is better", "minimize": "lower is better"}
WHOLE_JOB = "Speed-up of a whole job"
DELTA_DIGITS = 2


def key_figures(metric: str, figures: DecisionFigures) -> list[str]:
    """Speed, quality and saving with their intervals, a line each; what is unknown is left out."""
    rows = (
        (WHOLE_JOB, speedup(figures.speed)),
        (metric, quality(figures)),
        ("Saving", saving(figures)),
    )
    return [f"{name}: {text}" for name, text in rows if text != UNKNOWN]


def speedup(speed: SpeedFigures) -> str:
    """``1.34x (1.25 to 1.44)``."""
    return f"{shown(speed.estimate, ratio)}{_between(ratio_interval(speed))}"


def ratio_interval(speed: SpeedFigures) -> str:
    """``1.25 to 1.44``, empty without one."""
    return "" if speed.interval is None else interval(speed.interval, lambda end: f"{end:.2f}")


def faster_or_slower(speed: SpeedFigures) -> str:
    """``1.34x faster``; a direction only where the interval excludes equal time."""
    if speed.estimate is None:
        return "speed-up unknown"
    times = ratio(speed.estimate)
    return {
        SpeedClaim.FASTER: f"{times} faster",
        SpeedClaim.SLOWER: f"slower, {times}",
        SpeedClaim.OPEN: times,
    }[speed.claim]


def quality(figures: DecisionFigures) -> str:
    """``no regression (Δ +0.002, interval -0.01 to +0.02, margin 0.05)``."""
    difference = figures.quality
    if difference.estimate is None:
        return UNKNOWN
    ends = delta_interval(difference.delta_interval)
    between = f", interval {ends}" if ends else ""
    size = f"{delta_of_runs(figures)}{between}, margin {shown(difference.margin, _rounded)}"
    return f"{quality_words(figures)} ({size})"


def quality_words(figures: DecisionFigures) -> str:
    """``no regression``; of a confirmed alarm also in which runs: the reason has their figure."""
    where = f" {IN_CHECK}" if figures.checked_worse else ""
    return f"{QUALITY_WORDS[figures.quality_claim]}{where}"


def delta_of_runs(figures: DecisionFigures) -> str:
    """``Δ +0.002``, which runs it is of said where others decided."""
    return f"{OF_ALL if figures.checked_worse else ''}{delta(figures.quality.delta)}"


def delta(value: float | None) -> str:
    """``Δ +0.002``: the candidate minus the baseline, in the metric's own unit."""
    return f"Δ {shown(value, with_sign)}"


def delta_interval(ends: Interval | None) -> str:
    """``-0.01 to +0.02``, empty without one."""
    return "" if ends is None else interval(ends, with_sign)


def with_sign(value: float) -> str:
    """``+0.002``, ``-0.01``, ``0``."""
    return f"{'+' if value > 0 else ''}{signed(_rounded(value))}"


def saving(figures: DecisionFigures) -> str:
    """``$1,200 per year ($900 to $1,500)``, or why no amount is named."""
    usd, claim = figures.saving.usd_per_year, figures.money_claim
    if usd is None:
        return UNKNOWN
    if not claim.has_amount:
        return f"not stated: {NO_AMOUNT[claim]}"
    ends = _between(saving_interval(figures))
    condition = "" if claim is MoneyClaim.SAVES else " if on"
    return f"{money(usd)} per year{condition}{ends}"


def saving_interval(figures: DecisionFigures) -> str:
    """``$900 to $1,500``, empty without one."""
    ends = figures.saving.interval_usd_per_year
    return "" if ends is None else interval(ends, money)


def goal(figures: QualityFigures) -> str:
    """``lower is better``; empty where it is not recorded."""
    return BETTER.get(figures.goal or "", "")


def evaluation_split(quality: Mapping[str, Any]) -> tuple[Mapping[str, Any], float, float] | None:
    """The recorded split, and its spreads of evaluation and of training; None without one."""
    evaluation = quality.get("evaluation") or {}
    training = number(evaluation.get("spread_of_training_expected"))
    own = number(evaluation.get("spread_of_evaluation"))
    if training is None or not own or not number(evaluation.get("examples")):
        return None
    return evaluation, own, training


def evaluation_words(quality: Mapping[str, Any]) -> str:
    """What the evaluation examples add to a metric's spread; empty where that is not recorded."""
    split = evaluation_split(quality)
    if split is None:
        return ""
    evaluation, own, training = split
    share = percent(own**2 / (own**2 + training**2), 2)
    text = (
        f"Of the spread between runs, {significant(own, 2)} comes from the choice of "
        f"{count(evaluation['examples'])} evaluation examples ({share} of the variance) and "
        f"about {significant(training, 2)} from training itself"
    )
    best, saved = number(evaluation.get("best_examples")), number(evaluation.get("runs_saved"))
    if best and saved:
        return f"{text}; {count(best)} examples would spare {count(saved)} runs of each arm."
    return f"{text}."


def _rounded(value: float) -> str:
    return significant(value, DELTA_DIGITS)


def _between(ends: str) -> str:
    return f" ({ends})" if ends else ""
