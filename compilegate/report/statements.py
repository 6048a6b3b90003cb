"""A decision's figures and reasons as text, in the same words on every screen and page.

The speed-up is the judge's one estimate of whole jobs, with its interval. What short blocks alone
say is called so. Differences of quality are in the metric's own unit, candidate minus baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from compilegate.domain.arithmetic import ratio, ratio_figure
from compilegate.domain.claims import (
    NO_AMOUNT,
    ON,
    Claims,
    MoneyClaim,
    QualityClaim,
    SpeedClaim,
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
from compilegate.domain.economics import AtLength
from compilegate.domain.formats import (
    MINUS,
    UNKNOWN,
    Format,
    count,
    duration,
    interval,
    money,
    percent,
    plural,
    shown,
    signed,
    significant,
)  # fmt: skip
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.judging.measured import ConfirmedFall, Measured
from compilegate.domain.optional import map_optional
from compilegate.domain.planning.rounds import MISSING
from compilegate.domain.reasons import Reason, advice
from compilegate.domain.workload.model import BASELINE

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
SCHEDULED = "By run_hours of the workload file"
DELTA_DIGITS = 2
ASSUMED = "Assumed: a harmful change that a compiler makes is like those faults"


def key_figures(metric: str, decision: Decision, claims: Claims) -> list[str]:
    """Speed, quality and saving with their intervals, a line each; what is unknown is left out."""
    rows = (
        (speed_name(decision.speedup), speedup(decision.speedup)),
        (SCHEDULED, at_length(decision.scheduled)),
        (metric, quality(decision.quality, claims)),
        ("Quality rests on", proofs(decision.quality, claims)),
        ("Saving", saving(decision.saving, claims)),
    )
    return [f"{name}: {text}" for name, text in rows if text != UNKNOWN]


def speedup(speed: Speedup | None) -> str:
    """``1.34x (1.25 to 1.44), from 3 short blocks and 6 full runs``, or a dash."""
    if speed is None:
        return UNKNOWN
    return f"{ratio(speed.estimate)} ({ratio_interval(speed)}), from {measured_by(speed)}"


def speed_name(speed: Speedup | None, otherwise: str = WHOLE_JOB) -> str:
    """``time to 0.92`` where the times to a target were compared."""
    return f"time to {speed.target}" if speed and speed.target is not None else otherwise


def at_length(run: AtLength | None) -> str:
    """``a run of 3 h: 1.25x (1.10 to 1.40), pays from 3.5 min on``, or a dash."""
    if run is None:
        return UNKNOWN
    ends = interval(run.interval, ratio_figure)
    pays = run.pays_from_seconds
    from_ = "pays at no length" if pays is None else f"pays from {duration(pays)} on"
    return f"a run of {duration(run.seconds)}: {ratio(run.speedup)} ({ends}), {from_}"


def measured_by(speed: Speedup) -> str:
    """``3 short blocks and 6 full runs``: what an estimate is from, as others are of other runs."""
    counts = ((speed.blocks, "short block"), (speed.full_runs, "full run"))
    return " and ".join(plural(runs, name) for runs, name in counts if runs)


def ratio_interval(speed: Speedup) -> str:
    """``1.25 to 1.44``."""
    return interval(speed.interval, ratio_figure)


def faster_or_slower(speed: Speedup | None) -> str:
    """``1.34x faster``; a direction only where the interval excludes equal time."""
    if speed is None:
        return "speed-up unknown"
    times, to = ratio(speed.estimate), "" if speed.target is None else f" to {speed.target}"
    return {
        SpeedClaim.FASTER: f"{times} faster{to}",
        SpeedClaim.SLOWER: f"slower{to}, {times}",
        SpeedClaim.OPEN: f"{times}{to}",
    }[speed_claim(speed.interval)]


def quality(judged: QualityFigures | None, claims: Claims) -> str:
    """``no regression (Δ +0.002, interval -0.01 to +0.02, margin 0.05)``, or a dash."""
    if judged is None or judged.estimate is None:
        return UNKNOWN
    ends = bounds(judged.delta_interval, with_sign)
    between = f", interval {ends}" if ends else ""
    margin = significant(judged.margin, DELTA_DIGITS)
    size = f"{delta_of_runs(judged, claims)}{between}, margin {margin}"
    return f"{quality_words(claims)} ({size})"


def proofs(judged: QualityFigures | None, claims: Claims) -> str:
    """What quality rests on, with both numbers and what they assume.

    A dash without a table of faults, and where a loss is proven.
    """
    seen = judged.equivalence if judged else None
    if seen is None or claims.quality is QualityClaim.WORSE:
        return UNKNOWN
    if seen.rho == 1:
        return f"full runs alone ({seen.reason})"
    missed, passed, both = (
        percent(share, 2) for share in (seen.rho, seen.level, seen.rho * seen.level)
    )
    return (
        f"two proofs: of harmful changes at most {missed} pass the equivalence check (it missed "
        f"{seen.missed} of {seen.faults} faults for {seen.job_class}, {seen.date}), and of those "
        f"at most {passed} pass full runs, together {both}. {ASSUMED}"
    )


def quality_words(claims: Claims) -> str:
    """``no regression``; of a confirmed alarm also in which runs: the reason has their figure."""
    return f"{QUALITY_WORDS[claims.quality]}{f' {IN_CHECK}' if claims.checked_worse else ''}"


def delta_of_runs(judged: QualityFigures, claims: Claims) -> str:
    """``Δ +0.002``, which runs it is of said where others decided."""
    return f"{OF_ALL if claims.checked_worse else ''}{delta(judged.delta)}"


def delta(value: float | None) -> str:
    """``Δ +0.002``: the candidate minus the baseline, in the metric's own unit."""
    return f"Δ {shown(value, with_sign)}"


def bounds(ends: Interval | None, as_text: Format) -> str:
    """``-0.01 to +0.02``, empty without an interval."""
    return map_optional(ends, lambda both: interval(both, as_text)) or ""


def with_sign(value: float) -> str:
    """``+0.002``, ``-0.01``, ``0``."""
    return f"{'+' if value > 0 else ''}{signed(significant(value, DELTA_DIGITS))}"


def saving(saved: SavingFigures | None, claims: Claims) -> str:
    """``$1,200 per year ($900 to $1,500)``, or why no amount is named."""
    claim = claims.money
    if saved is None:
        return UNKNOWN
    if not claim.has_amount:
        return f"not stated: {NO_AMOUNT[claim]}"
    between = bounds(saved.interval_usd_per_year, money)
    ends = f" ({between})" if between else ""
    condition = "" if claim is MoneyClaim.SAVES else " if on"
    return f"{money(saved.usd_per_year)} per year{condition}{ends}"


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


def fall_in_check(checked: ConfirmedFall) -> str:
    """``Δ +0.054 in the 3 runs of each arm that checked the alarm``."""
    fall = checked.look.fall
    each = "each arm" if fall.theirs == fall.ours else "the candidate"
    size = map_optional(checked.speedup, ratio) or delta(checked.delta)
    return f"{size} in the {plural(fall.ours, 'run')} of {each} that checked the alarm"


def confidence_words(quality: QualityFigures) -> str:
    """``98 % interval, holds at every look``; empty where there is no interval."""
    if quality.confidence is None or quality.interval is None:
        return ""
    held = "" if quality.look is None else ", holds at every look"
    return f"{percent(quality.confidence)} interval{held}"


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
WAITS_FOR_BLOCKS = "speed_needs_blocks"
NOT_APPLIED = "treatment_not_applied"
FAILURES = frozenset({
    *CRASHED, NOT_APPLIED, "arms_differ", "arms_continue_each_other", "numerics_wrong",
    "not_equivalent", "runs_repeated", "unequal_initial_loss", "unequal_initial_weights",
    "unequal_work", "evaluation_sets_differ",
    "evidence_invalid", "evidence_missing", "clock_implausible", "evidence_overwritten",
    "request_refused", "quota_too_low", "flag_too_large",
})  # fmt: skip


def shown_reasons(
    decision: Decision,
    measured: Measured | None,
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
    shown = [_shown(reason, decision, measured) for reason in reasons]
    first, others = shown[:1], shown[1:]
    return (*first, *sorted(others, key=lambda reason: reason.code not in FAILURES))


def _shown(reason: Reason, decision: Decision, measured: Measured | None) -> Reason:
    if reason.code in OF_SPEED and decision.verdict not in ON and reason.arm == decision.candidate:
        return _of_speed(reason, decision.speedup, measured)
    if reason.code not in FAILURES:
        return replace(reason, message=_as_read(reason.message))
    cause = _cause(reason, measured) if measured else ""
    message = f"{reason.message.rstrip('.')} ({cause})" if cause else reason.message
    return replace(reason, message=message, fix=reason.fix or advice(reason.code))


def _as_read(text: str) -> str:
    for recorded, read in READ_AS:
        text = text.replace(recorded, read)
    return text


def _of_speed(reason: Reason, speed: Speedup | None, measured: Measured | None) -> Reason:
    """The gate's proof is of short blocks, whatever full runs say; both agree in a promotion."""
    if not speed or not speed.full_runs or not speed.predicted or speed.lower_bound is None:
        return reason
    blocks = f"the short blocks alone predict {ratio(speed.predicted.estimate)}"
    if reason.code == "speedup_proven":
        proven = f"and prove more than {ratio(speed.lower_bound)}; whole jobs decide"
        return replace(reason, message=f"{reason.arm}: {blocks} {proven}")
    if not measured or measured.lead.name != reason.arm:
        return reason
    bar = ratio(measured.thresholds[0])
    whole = f"whole jobs, start-up and evaluation included, are {speedup(speed)}"
    return replace(reason, message=f"{reason.arm}: {whole}, required is {bar}; {blocks}")


def _cause(reason: Reason, measured: Measured) -> str:
    """What the first run that failed said; of one that ran without the change its compiler."""
    for arm in measured.arms:
        ended = arm.unapplied if reason.code == NOT_APPLIED else arm.failed
        if arm.name == (reason.arm or BASELINE) and ended:
            return f"{_place(ended.run)}: {ended.said.rstrip('.')}"
    return ""


def _place(run: SpeedRun | FullRun) -> str:
    if isinstance(run, SpeedRun):
        return f"short block {run.block}"
    return "full run" if run.seed is None else f"full run with seed {run.seed}"
