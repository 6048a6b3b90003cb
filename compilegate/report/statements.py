"""A decision's figures as text: the same number in the same words on every screen and page.

The speed-up is the judge's one estimate of whole jobs, with its interval. What short blocks alone
say is called so. Differences of quality are in the metric's own unit, candidate minus baseline.
"""

from __future__ import annotations

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import (
    NO_AMOUNT,
    Claims,
    MoneyClaim,
    QualityClaim,
    SpeedClaim,
    claims_of,
    speed_claim,
)
from compilegate.domain.decision import (
    Decision,
    EvaluationFinding,
    EvaluationSplit,
    Interval,
    QualityFigures,
    SavingFigures,
    Speedup,
)
from compilegate.domain.formats import (
    UNKNOWN,
    count,
    interval,
    money,
    percent,
    shown,
    signed,
    significant,
)  # fmt: skip

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


def key_figures(metric: str, decision: Decision) -> list[str]:
    """Speed, quality and saving with their intervals, a line each; what is unknown is left out."""
    rows = (
        (WHOLE_JOB, speedup(decision.speedup)),
        (metric, quality(decision)),
        ("Saving", saving(decision)),
    )
    return [f"{name}: {text}" for name, text in rows if text != UNKNOWN]


def speedup(speed: Speedup | None) -> str:
    """``1.34x (1.25 to 1.44)``, or a dash."""
    return f"{ratio(speed.estimate)} ({ratio_interval(speed)})" if speed else UNKNOWN


def ratio_interval(speed: Speedup) -> str:
    """``1.25 to 1.44``."""
    return interval(speed.interval, lambda end: f"{end:.2f}")


def faster_or_slower(speed: Speedup | None) -> str:
    """``1.34x faster``; a direction only where the interval excludes equal time."""
    if speed is None:
        return "speed-up unknown"
    times = ratio(speed.estimate)
    return {
        SpeedClaim.FASTER: f"{times} faster",
        SpeedClaim.SLOWER: f"slower, {times}",
        SpeedClaim.OPEN: times,
    }[speed_claim(speed.interval)]


def quality(decision: Decision) -> str:
    """``no regression (Δ +0.002, interval -0.01 to +0.02, margin 0.05)``, or a dash."""
    judged, claims = decision.quality, claims_of(decision)
    if judged is None or judged.estimate is None:
        return UNKNOWN
    ends = delta_interval(judged.delta_interval)
    between = f", interval {ends}" if ends else ""
    margin = significant(judged.margin, DELTA_DIGITS)
    size = f"{delta_of_runs(judged, claims)}{between}, margin {margin}"
    return f"{quality_words(claims)} ({size})"


def quality_words(claims: Claims) -> str:
    """``no regression``; of a confirmed alarm also in which runs: the reason has their figure."""
    return f"{QUALITY_WORDS[claims.quality]}{f' {IN_CHECK}' if claims.checked_worse else ''}"


def delta_of_runs(judged: QualityFigures, claims: Claims) -> str:
    """``Δ +0.002``, which runs it is of said where others decided."""
    return f"{OF_ALL if claims.checked_worse else ''}{delta(judged.delta)}"


def delta(value: float | None) -> str:
    """``Δ +0.002``: the candidate minus the baseline, in the metric's own unit."""
    return f"Δ {shown(value, with_sign)}"


def delta_interval(ends: Interval | None) -> str:
    """``-0.01 to +0.02``, empty without one."""
    return "" if ends is None else interval(ends, with_sign)


def with_sign(value: float) -> str:
    """``+0.002``, ``-0.01``, ``0``."""
    return f"{'+' if value > 0 else ''}{signed(significant(value, DELTA_DIGITS))}"


def saving(decision: Decision) -> str:
    """``$1,200 per year ($900 to $1,500)``, or why no amount is named."""
    saved, claim = decision.saving, claims_of(decision).money
    if saved is None:
        return UNKNOWN
    if not claim.has_amount:
        return f"not stated: {NO_AMOUNT[claim]}"
    between = saving_interval(saved)
    ends = f" ({between})" if between else ""
    condition = "" if claim is MoneyClaim.SAVES else " if on"
    return f"{money(saved.usd_per_year)} per year{condition}{ends}"


def saving_interval(saving: SavingFigures) -> str:
    """``$900 to $1,500``, empty without one."""
    ends = saving.interval_usd_per_year
    return "" if ends is None else interval(ends, money)


def split_of(decision: Decision) -> EvaluationSplit | None:
    """What the evaluation examples add to the spread between runs, None where that is unknown."""
    evaluation = decision.quality.evaluation if decision.quality else None
    return evaluation if isinstance(evaluation, EvaluationSplit) else None


def evaluation_words(evaluation: EvaluationFinding | None) -> str:
    """What the evaluation examples add to a metric's spread; empty where that was not split."""
    if not isinstance(evaluation, EvaluationSplit) or not evaluation.spread_of_evaluation:
        return ""
    own, training = evaluation.spread_of_evaluation, evaluation.spread_of_training_expected
    share = percent(own**2 / (own**2 + training**2), 2)
    text = (
        f"Of the spread between runs, {significant(own, 2)} comes from the choice of "
        f"{count(evaluation.examples)} evaluation examples ({share} of the variance) and "
        f"about {significant(training, 2)} from training itself"
    )
    best, saved = evaluation.best_examples, evaluation.runs_saved
    if best and saved:
        return f"{text}; {count(best)} examples would spare {count(saved)} runs of each arm."
    return f"{text}."
