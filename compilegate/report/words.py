"""The verdict in words: headline, sentences, key figures and what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compilegate.domain.arithmetic import mean, ratio
from compilegate.domain.claims import ALARM, FLAG_STATES, VERDICTS, Label, SpeedClaim
from compilegate.domain.compilers import compiler_named
from compilegate.domain.decision import ControlFigures, Verdict
from compilegate.domain.formats import UNKNOWN, significant
from compilegate.domain.judging.measured import Measured
from compilegate.domain.judging.outlook import proof_outlook, runs_that_pay
from compilegate.domain.reasons import headline as reason_headline
from compilegate.report import statements
from compilegate.report.markup import paragraph, paragraphs, rows
from compilegate.report.statements import FAILURES, confidence_words
from compilegate.report.trial_report import TrialReport

# Characters that fit on one line of the page on a desktop screen.
LONGEST = 70
MAY_BE_SLOWER = {"speedup_too_small", "full_run_disagrees"}
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}


def label(trial: TrialReport) -> Label:
    """The verdict in two or three words, with its tone."""
    if trial.verdict is Verdict.CONTINUE and trial.on_probation:
        return ALARM if "alarm" in trial.codes else FLAG_STATES["probation"]
    return VERDICTS[trial.verdict or "failed"]


def headline(trial: TrialReport, *, brief: bool = False) -> str:
    """What to do, and the figure or the reason that says so.

    ``brief`` leaves out the speed where something else decided.
    """
    opening = label(trial).text
    if trial.verdict is Verdict.CONTINUE and trial.on_probation:
        opening = FLAG_STATES["probation"].text
    elif trial.verdict is Verdict.INCONCLUSIVE:
        evidence = trial.evidence
        unstarted = evidence is not None and not any(arm.runs for arm in evidence.arms)
        opening = "Not tried" if trial.judged.stage == "plan" or unstarted else opening
    return paragraph(
        "headline", trial=trial, opening=opening, change=_change(trial),
        cannot_pay=CANNOT_PAY, because=_because(trial, opening, brief=brief),
    )  # fmt: skip


def _change(trial: TrialReport) -> str:
    """What a promotion changes; a compiler, unless the records name another change."""
    for arms in (trial.evidence.arms if trial.evidence else (), trial.planned_arms):
        for arm in arms:
            if arm.name == trial.candidate and arm.overrides:
                compiles = compiler_named(str(arm.overrides.get("compiler"))).compiles
                return "Turn the compiler on" if compiles else f"Switch to {trial.candidate}"
    return "Turn the compiler on"


def _because(trial: TrialReport, opening: str, *, brief: bool) -> str:
    """The opening and the reason that decided: the first, in its own words if it is unknown."""
    if not trial.reasons:
        return f"{opening}: no reason was recorded"
    first, speed = trial.reasons[0], trial.judged.speedup
    template = reason_headline(first.code, _variant(trial, first.code))
    if not template:
        return _cut(f"{opening}: {first.message.rstrip('.')}")
    faster = statements.faster_or_slower(speed)
    reject, promote = map(ratio, trial.thresholds) if trial.thresholds else ("speed-up",) * 2
    text = template.format(
        speed=faster,
        times=ratio(speed.estimate) if speed else UNKNOWN,
        but=f"{faster}, but " if speed and not brief else "",
        metric=trial.metric,
        margin=significant(trial.quality.margin) if trial.quality else "the size set",
        promote=promote,
        reject=reject,
    )
    return f"{opening}: {text}"


def _variant(trial: TrialReport, code: str) -> str | None:
    """The situation, where one code stands for different endings."""
    speed = trial.judged.speedup
    if code in MAY_BE_SLOWER and trial.claims.speed is SpeedClaim.SLOWER:
        return "slower"
    if code == "trial_over_budget" and trial.judged.stage == "plan":
        return "plan"
    if code == "candidate_crashed" and trial.on_probation:
        return "probation"
    if code != "speed_inconclusive":
        return None
    if speed is None:
        return "no_steady_state"
    required = trial.thresholds[0] if trial.thresholds else math.inf
    return "faster_not_clearly" if (speed.lower_bound or 0.0) > required else None


def _cut(text: str) -> str:
    """At most one line, ended between words."""
    flat = " ".join(text.split())
    if len(flat) <= LONGEST:
        return flat
    return flat[: LONGEST - 2].rpartition(" ")[0].rstrip(" ,.:;(") + "..."


def lede(trial: TrialReport) -> list[str]:
    """A few sentences under the headline: of a failure its cause and fix, else the key figures."""
    failures = (reason for reason in trial.reasons[:1] if reason.code in FAILURES)
    flag = paragraph("flag", trial=trial)
    return paragraphs("lede", trial=trial, flag=flag, failure=next(failures, None))


def control_sentences(controls: Sequence[ControlFigures]) -> list[str]:
    """One for each control; controls decide nothing."""
    return paragraphs("controls", controls=controls)


# What would change the verdict: what to ask for, from figures of the trial and of the judge.

# Reasons by what helps against them, in the order in which it is said.
KINDS = {
    "quality_open": {"quality_inconclusive", "quality_needs_runs", "underpowered"},
    "speed_open": {"speed_inconclusive", "speed_needs_blocks"},
    "other_numbers": ("not_equivalent", "numerics_wrong", "guardrail_worse"),
    "full_jobs": {"full_run_disagrees", "full_run_unmeasured"},
    "unproven": (
        "saving_unproven", "full_run_unproven", "full_run_implausible", "guardrail_inconclusive",
        "guardrail_unreported",
    ),
    "limits": (
        "evidence_missing", "trial_over_budget", "price_unknown", "trial_over_time",
        "too_many_rounds",
    ),
    "out_of_time": {"trial_over_time", "too_many_rounds"},
    "objections": (
        "treatment_not_applied", "arms_differ", "runs_repeated", "unequal_initial_loss",
        "unequal_initial_weights", "unequal_work", "evaluation_sets_differ", "evidence_invalid",
        "clock_implausible", "evidence_overwritten",
    ),
}  # fmt: skip


def recommendations(trial: TrialReport) -> list[str]:
    """Sentences, most useful first (assets/changes.txt.j2)."""
    sentences = paragraphs(
        "changes", trial=trial, **KINDS, ceil=math.ceil, run_length=_run_length,
        proof_outlook=proof_outlook, runs_that_pay=runs_that_pay,
    )  # fmt: skip
    return list(dict.fromkeys(sentences))


@dataclass(frozen=True)
class RunLength:
    """From how many steps on a run gains what is required, None if never; seconds of a step."""

    steps: int | None
    gain: float
    baseline_step: float
    candidate_step: float
    overhead: float


def _run_length(measured: Measured) -> RunLength | None:
    """How long a run must be until the compile time is earned back with the required gain."""
    _, goal = measured.thresholds
    base, ours = measured.baseline, measured.lead
    baseline_step, candidate_step = base.steady_step_seconds, ours.steady_step_seconds
    steps = ours.arm.full_run_steps
    if not baseline_step or not candidate_step or not steps or steps != base.arm.full_run_steps:
        return None
    baseline_overhead, overhead = (
        mean([segment.overhead_seconds for segment in arm.steady]) for arm in (base, ours)
    )
    gain_per_step = baseline_step - goal * candidate_step
    needed = None
    if gain_per_step > 0:
        needed = math.ceil((goal * overhead - baseline_overhead) / gain_per_step)
    gain = baseline_step / candidate_step
    return RunLength(needed, gain, baseline_step, candidate_step, overhead)


# The key figures with their bullet charts, each with its comparison or why it is unknown.

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
        put = rows("economics", figures=trial.eligibility.get("economics"))
    else:
        quality = trial.judged.quality
        put = rows(
            "cards", trial=trial,
            reference=trial.measured.reference if trial.measured else None,
            confidence=confidence_words(quality) if quality else "",
            bullets={"speed": _speed_bullet(trial), "quality": _quality_bullet(trial)},
        )  # fmt: skip
    return [MetricCard(name, value, note, bullet) for name, value, bullet, note in put]


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
    reach = max(fixed) - min(fixed) or 1.0
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


def _spread_labels(marks: Sequence[Mark]) -> Sequence[Mark]:
    """Both labels pushed outwards where they would touch."""
    first, last = marks
    if last.at - first.at >= LABEL_WIDTH:
        return marks
    return [replace(first, anchor="end"), replace(last, anchor="start")]
