"""The key figures with their bullet charts, each with its comparison or why it is unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import NO_AMOUNT, MoneyClaim
from compilegate.domain.decision import Verdict
from compilegate.domain.formats import (  # fmt: skip
    UNKNOWN,
    interval,
    money,
    number,
    pair,
    plural,
    significant,
)
from compilegate.report import statements, wording
from compilegate.report.measured import confidence_words, reference_of
from compilegate.report.trial_report import TrialReport

say = partial(wording.say, "cards")

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


def metric_cards(trial: TrialReport) -> list[MetricCard]:
    """What decides, then what it is worth; none for a failed trial, which decided nothing."""
    if trial.verdict is None:
        return []
    if trial.verdict is Verdict.INELIGIBLE:
        return _economics(trial) if trial.eligibility.get("economics") else []
    return [_speed(trial), _quality(trial), _saving(trial), _payback(trial), _trial_cost(trial)]


def _speed(trial: TrialReport) -> MetricCard:
    name, speed, fall = statements.WHOLE_JOB, trial.speed, trial.fall
    if speed is None:
        return MetricCard(name, UNKNOWN, _why_no_speed(trial))
    dearer = trial.price_ratio if trial.price_ratio != 1 else None
    note = say(
        "speed", fall=fall.words if fall and fall.speedup is not None else None,
        ends=statements.ratio_interval(speed), level=speed.confidence,
        predicted=not speed.full_runs and bool(speed.blocks),
        dollars=dearer and speed.estimate / dearer, price=dearer,
        against="; ".join(trial.against),
    )  # fmt: skip
    bullet = None
    if trial.thresholds:
        reject, _ = trial.thresholds  # promote is asked of the short blocks
        limits = [(1.0, "1x", "plain"), (reject, ratio(reject), "bad")]
        words = "Scale with equal time and the limit for whole jobs"
        bullet = _bullet(speed.estimate, speed.interval, sorted(limits), words)
    return MetricCard(name, ratio(speed.estimate), note, bullet)


def _why_no_speed(trial: TrialReport) -> str:
    if trial.verdict is Verdict.INVALID:
        return "An invalid comparison has no speed-up."
    if isinstance(trial.measured, str) or not trial.measured.has_speed:
        return "No block was measured."
    return "No estimate could be computed from the blocks: see the reasons."


def _quality(trial: TrialReport) -> MetricCard:
    name, quality, fall = f"Quality: {trial.metric}", trial.quality, trial.fall
    if quality is None or quality.delta is None:
        return MetricCard(name, UNKNOWN, _why_no_quality(trial))
    reference = reference_of(trial.measured, quality)
    checked = statements.IN_CHECK if trial.claims.checked_worse else None
    note = say(
        "quality", checked=fall.words if fall and fall.delta is not None else checked,
        size=statements.delta_of_runs(quality, trial.claims),
        ends=statements.delta_interval(quality.delta_interval),
        margin=significant(quality.margin), goal=statements.BETTER[quality.goal],
        level=confidence_words(quality), reference=reference.words if reference else None,
    )  # fmt: skip
    limits = [(quality.limit, statements.with_sign(quality.limit), "bad"), (0.0, "equal", "plain")]
    words = "Scale with the margin"
    bullet = _bullet(quality.delta, quality.delta_interval, sorted(limits), words)
    words = statements.QUALITY_WORDS[trial.claims.quality]
    return MetricCard(name, words.capitalize(), note, bullet)


def _why_no_quality(trial: TrialReport) -> str:
    if trial.quality:
        return "No difference could be computed from the full runs: see the reasons."
    if trial.stage in ("speed", "plan"):
        return "No full run was needed: the trial ended before."
    return "No full run was compared."


def _saving(trial: TrialReport) -> MetricCard:
    saving, claim = trial.saving, trial.claims.money
    name = f"Saving per year{'' if claim is MoneyClaim.SAVES else ' if on'}"
    if saving is None:
        return MetricCard(name, UNKNOWN, "Needs a speed-up, a price and a run's length.")
    if not claim.has_amount:
        return MetricCard(name, UNKNOWN, f"Not stated: {NO_AMOUNT[claim]}.")
    per_run, per_year, whole = saving.usd_per_run, saving.usd_per_year, saving.usd_per_run_baseline
    note = say(
        "saving", ends=statements.saving_interval(saving), usd=per_run,
        share=abs(per_run) / whole if per_run and whole else None,
        spent=per_year * whole / per_run if per_run and whole else None,
        against="; ".join(trial.against),
    )  # fmt: skip
    return MetricCard(name, money(per_year), note.removesuffix("; "))


def _payback(trial: TrialReport) -> MetricCard:
    saving, claim = trial.saving, trial.claims.money
    if saving is not None and not claim.has_amount:
        note = f"Not stated: {NO_AMOUNT[claim]}."
        return MetricCard("Payback", UNKNOWN, note)
    runs = saving.payback_runs if saving else None
    if runs is None:
        if saving is not None and saving.usd_per_run <= 0:
            return MetricCard("Payback", "never", "A run with the candidate does not cost less.")
        return MetricCard("Payback", UNKNOWN, "Needs the saving per run and the trial's cost.")
    per_week = (trial.evidence.runs_per_week if trial.evidence else None) or None
    note = say("payback", per_week=per_week, days=per_week and 7 * runs / per_week)
    return MetricCard("Payback", plural(runs, "run"), note)


def _trial_cost(trial: TrialReport) -> MetricCard:
    name, usd = "Cost of this trial", trial.trial_usd
    expected = number(trial.plan.expected_usd) if trial.plan else None
    cap = trial.plan.max_trial_usd if trial.plan else None
    planned = say("trial_cost", expected=expected, cap=cap).removesuffix(", ")
    if usd is None:
        reason = "Nothing was started." if trial.source["evidence"] is None else "Not recorded."
        return MetricCard(name, UNKNOWN, f"{reason} {planned}".strip())
    return MetricCard(name, money(usd), planned or "by billable time")


def _economics(trial: TrialReport) -> list[MetricCard]:
    """What eligibility alone says about money, before anything ran."""
    figures = trial.eligibility["economics"]
    dated = figures.get("prices_as_of")
    prices = f"list prices as of {dated}" if dated else "list prices"

    def card(name: str, key: str, show: Callable[[float], str], note: str) -> MetricCard:
        value = number(figures.get(key))
        if value is None:
            note = "The workload file lacks the values to compute it."
        return MetricCard(name, UNKNOWN if value is None else show(value), note)

    plausible = pair(figures.get("plausible_annual_saving_usd"))
    return [
        card("Training per year", "annual_training_usd", money, prices),
        MetricCard(
            "Plausible saving per year", interval(plausible, money),
            "from none to the best case" if plausible else "No price or schedule is known.",
        ),
        card("A trial would cost", "trial_usd", money, "nothing was started, nothing was spent"),
        card(
            "Break-even run length", "break_even_run_minutes",
            lambda minutes: f"{significant(minutes)} min", "shorter runs lose to compile time",
        ),
        card(
            "Payback", "payback_days", lambda days: plural(days, "day"),
            "if the plausible saving is reached",
        ),
    ]  # fmt: skip


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
