"""The key figures, each with what it is measured against or why it is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import (  # fmt: skip
    UNKNOWN,
    interval,
    money,
    number,
    pair,
    percent,
    plural,
    ratio,
    shown,
    significant,
)
from compilegate.report.bullet_charts import BulletChart, quality_bullet, speed_bullet
from compilegate.report.charts.quality import better_or_worse
from compilegate.report.reference import confidence_words, reference_of
from compilegate.report.trial_report import TrialReport


@dataclass(frozen=True)
class MetricCard:
    """A figure; ``note`` explains it, or says why ``value`` is a dash."""

    name: str
    value: str
    note: str
    bullet: BulletChart | None = None


def metric_cards(trial: TrialReport) -> list[MetricCard]:
    """What decides, then what it is worth."""
    if trial.verdict is None:
        return []  # a failed trial decided nothing that a figure could stand for
    if trial.verdict is Verdict.INELIGIBLE:
        return _economics(trial) if trial.eligibility.get("economics") else []
    return [_speed(trial), _quality(trial), _saving(trial), _payback(trial), _trial(trial)]


def _speed(trial: TrialReport) -> MetricCard:
    name = "Speed-up of a full run"
    if trial.speedup is None:
        return MetricCard(name, UNKNOWN, _why_no_speed(trial))
    ends = trial.speedup_interval
    note = "One block gives no interval." if ends is None else interval(ends, ratio)
    confidence = number(trial.speed.get("confidence"))
    if ends and confidence is not None:
        note += f" ({percent(confidence)} interval)"
    if trial.price_ratio != 1:
        worth = trial.speedup / trial.price_ratio
        note += f"; {ratio(worth)} in dollars, at {trial.price_ratio:.2f} times the price per hour"
    return MetricCard(name, ratio(trial.speedup), note, speed_bullet(trial))


def _why_no_speed(trial: TrialReport) -> str:
    if trial.verdict is Verdict.INVALID:
        return "An invalid comparison has no speed-up."
    if isinstance(trial.measured, str) or not trial.measured.has_speed:
        return "No block was measured."
    return "The blocks allow no estimate: see the reasons."


def _quality(trial: TrialReport) -> MetricCard:
    name, estimate = f"Quality: {trial.metric}", number(trial.quality.get("estimate"))
    if estimate is None:
        return MetricCard(name, UNKNOWN, _why_no_quality(trial))
    parts = []
    if pair(trial.quality.get("interval")):
        parts.append(interval(trial.quality["interval"], better_or_worse))
        parts.append(confidence_words(trial.quality))
    parts.append(f"margin {shown(trial.quality.get('margin'), significant)}")
    found = reference_of(trial.measured, trial.quality)
    if found and found.past:
        parts.append(f"reference: {found.words}")
    note = "; ".join(part for part in parts if part)
    return MetricCard(name, better_or_worse(estimate), note, quality_bullet(trial))


def _why_no_quality(trial: TrialReport) -> str:
    if trial.quality:
        return "The full runs do not allow a difference: see the reasons."
    if trial.decision.get("stage") in ("speed", "plan"):
        return "No full run was needed: the trial ended before."
    return "No full run was compared."


def _saving(trial: TrialReport) -> MetricCard:
    per_year = number(trial.saving.get("usd_per_year"))
    on = trial.verdict in (Verdict.PROMOTE, Verdict.PERMANENT)
    name = "Saving per year" if on else "Saving per year, were it on"
    per_run = number(trial.saving.get("usd_per_run"))
    if per_year is None:
        if per_run is not None:
            return MetricCard("Saving per run", money(per_run), "Runs per year are unknown.")
        return MetricCard(name, UNKNOWN, "Needs a speed-up, a price and a run's length.")
    parts = [] if per_run is None else [f"{money(per_run)} per run"]
    if pair(trial.saving.get("interval_usd_per_year")):
        parts.insert(0, interval(trial.saving["interval_usd_per_year"], money))
    return MetricCard(name, money(per_year), "; ".join(parts))


def _payback(trial: TrialReport) -> MetricCard:
    name, runs = "Payback", number(trial.saving.get("payback_runs"))
    per_run = number(trial.saving.get("usd_per_run"))
    if runs is None:
        if per_run is not None and per_run <= 0:
            return MetricCard(name, "never", "A run with the candidate costs no less.")
        return MetricCard(name, UNKNOWN, "Needs the saving per run and the trial's cost.")
    note = "until the trial is paid back"
    if trial.runs_per_week:
        days = 7 * runs / trial.runs_per_week
        note += f", about {plural(days, 'day')} at {significant(trial.runs_per_week)} runs a week"
    return MetricCard(name, plural(runs, "run"), note)


def _trial(trial: TrialReport) -> MetricCard:
    name, estimate = "Cost of this trial", trial.plan.get("estimate") or {}
    planned, cap = number(estimate.get("usd")), number(trial.plan.get("max_trial_usd"))
    parts = [] if planned is None else [f"expected about {money(planned)}"]
    parts += [] if cap is None else [f"cap {money(cap)}"]
    if trial.trial_usd is None:
        reason = "Nothing was started." if trial.source["evidence"] is None else "Not recorded."
        return MetricCard(name, UNKNOWN, " ".join([reason, ", ".join(parts)]).strip())
    return MetricCard(name, money(trial.trial_usd), ", ".join(parts) or "by billable time")


def _economics(trial: TrialReport) -> list[MetricCard]:
    """What eligibility alone knows of money, before anything ran."""
    figures = trial.eligibility["economics"]
    dated = figures.get("prices_as_of")
    prices = f"list prices as of {dated}" if dated else "list prices"

    def card(name: str, key: str, show: Callable[[float], str], note: str) -> MetricCard:
        value = number(figures.get(key))
        unknown = "Not computable from what the workload file says."
        return (
            MetricCard(name, UNKNOWN, unknown)
            if value is None
            else MetricCard(name, show(value), note)
        )

    plausible = figures.get("plausible_annual_saving_usd")
    return [
        card("Training per year", "annual_training_usd", money, prices),
        MetricCard(
            "Plausible saving per year",
            interval(plausible, money) if pair(plausible) else UNKNOWN,
            "from none to the best case" if pair(plausible) else "No price or schedule is known.",
        ),
        card("A trial would cost", "trial_usd", money, "nothing was started, nothing was spent"),
        card(
            "Break-even run length", "break_even_run_minutes",
            lambda minutes: f"{significant(minutes)} min", "shorter runs lose to compile time",
        ),
        card("Payback", "payback_days", lambda days: plural(days, "day"), "if it came true"),
    ]  # fmt: skip
