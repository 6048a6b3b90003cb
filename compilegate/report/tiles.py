"""The key figures, each with what it is measured against or why it is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilegate.domain.decision import Verdict
from compilegate.report.case import Case
from compilegate.report.charts.quality import better_or_worse
from compilegate.report.formats import (
    UNKNOWN,
    interval,
    money,
    number,
    pair,
    plural,
    ratio,
    shown,
    significant,
)  # fmt: skip
from compilegate.report.reference import confidence_words, reference_of
from compilegate.report.rulers import Ruler, quality_ruler, speed_ruler


@dataclass(frozen=True)
class Tile:
    """A figure; ``note`` explains it, or says why ``value`` is a dash."""

    name: str
    value: str
    note: str
    ruler: Ruler | None = None


def tiles(case: Case) -> list[Tile]:
    """What decides, then what it is worth."""
    if case.verdict is None:
        return []  # a failed trial decided nothing that a figure could stand for
    if case.verdict is Verdict.INELIGIBLE:
        return _economics(case) if case.eligibility.get("economics") else []
    return [_speed(case), _quality(case), _saving(case), _payback(case), _trial(case)]


def _speed(case: Case) -> Tile:
    name = "Speed-up of a full run"
    if case.speedup is None:
        return Tile(name, UNKNOWN, _why_no_speed(case))
    ends = case.speedup_interval
    note = "One block gives no interval." if ends is None else interval(ends, ratio)
    confidence = number(case.speed.get("confidence"))
    if ends and confidence is not None:
        note += f" ({significant(100 * confidence)} % interval)"
    if case.price_ratio != 1:
        worth = case.speedup / case.price_ratio
        note += f"; {ratio(worth)} in dollars, at {case.price_ratio:.2f} times the price per hour"
    return Tile(name, ratio(case.speedup), note, speed_ruler(case))


def _why_no_speed(case: Case) -> str:
    if case.verdict is Verdict.INVALID:
        return "An invalid comparison has no speed-up."
    if isinstance(case.measured, str) or not case.measured.has_speed:
        return "No block was measured."
    return "The blocks allow no estimate: see the reasons."


def _quality(case: Case) -> Tile:
    name, estimate = f"Quality: {case.metric}", number(case.quality.get("estimate"))
    if estimate is None:
        return Tile(name, UNKNOWN, _why_no_quality(case))
    parts = []
    if pair(case.quality.get("interval")):
        parts.append(interval(case.quality["interval"], better_or_worse))
        parts.append(confidence_words(case.quality))
    parts.append(f"margin {shown(case.quality.get('margin'), significant)}")
    found = reference_of(case.measured, case.quality)
    if found and found.past:
        parts.append(f"reference: {found.words}")
    note = "; ".join(part for part in parts if part)
    return Tile(name, better_or_worse(estimate), note, quality_ruler(case))


def _why_no_quality(case: Case) -> str:
    if case.quality:
        return "The full runs do not allow a difference: see the reasons."
    if case.decision.get("stage") in ("speed", "plan"):
        return "No full run was needed: the trial ended before."
    return "No full run was compared."


def _saving(case: Case) -> Tile:
    per_year = number(case.saving.get("usd_per_year"))
    on = case.verdict in (Verdict.PROMOTE, Verdict.PERMANENT)
    name = "Saving per year" if on else "Saving per year, were it on"
    per_run = number(case.saving.get("usd_per_run"))
    if per_year is None:
        if per_run is not None:
            return Tile("Saving per run", money(per_run), "The number of runs a year is unknown.")
        return Tile(name, UNKNOWN, "Needs a speed-up, a price and a run's length.")
    parts = [] if per_run is None else [f"{money(per_run)} per run"]
    if pair(case.saving.get("interval_usd_per_year")):
        parts.insert(0, interval(case.saving["interval_usd_per_year"], money))
    return Tile(name, money(per_year), "; ".join(parts))


def _payback(case: Case) -> Tile:
    name, runs = "Payback", number(case.saving.get("payback_runs"))
    per_run = number(case.saving.get("usd_per_run"))
    if runs is None:
        if per_run is not None and per_run <= 0:
            return Tile(name, "never", "A run with the candidate costs no less.")
        return Tile(name, UNKNOWN, "Needs the saving per run and the trial's cost.")
    note = "until the trial is paid back"
    if case.runs_per_week:
        days = 7 * runs / case.runs_per_week
        note += f", about {plural(days, 'day')} at {significant(case.runs_per_week)} runs a week"
    return Tile(name, plural(runs, "run"), note)


def _trial(case: Case) -> Tile:
    name, estimate = "Cost of this trial", case.plan.get("estimate") or {}
    planned, cap = number(estimate.get("usd")), number(case.plan.get("max_trial_usd"))
    parts = [] if planned is None else [f"expected about {money(planned)}"]
    parts += [] if cap is None else [f"cap {money(cap)}"]
    if case.trial_usd is None:
        reason = "Nothing was started." if case.source["evidence"] is None else "Not recorded."
        return Tile(name, UNKNOWN, " ".join([reason, ", ".join(parts)]).strip())
    return Tile(name, money(case.trial_usd), ", ".join(parts) or "by billable time")


def _economics(case: Case) -> list[Tile]:
    """What eligibility alone knows of money, before anything ran."""
    figures = case.eligibility["economics"]
    dated = figures.get("prices_as_of")
    prices = f"list prices as of {dated}" if dated else "list prices"

    def tile(name: str, key: str, show: Callable[[float], str], note: str) -> Tile:
        value = number(figures.get(key))
        unknown = "Not computable from what the workload file says."
        return Tile(name, UNKNOWN, unknown) if value is None else Tile(name, show(value), note)

    plausible = figures.get("plausible_annual_saving_usd")
    return [
        tile("Training per year", "annual_training_usd", money, prices),
        Tile(
            "Plausible saving per year",
            interval(plausible, money) if pair(plausible) else UNKNOWN,
            "from none to the best case" if pair(plausible) else "No price or schedule is known.",
        ),
        tile("A trial would cost", "trial_usd", money, "nothing was started, nothing was spent"),
        tile(
            "Break-even run length", "break_even_run_minutes",
            lambda minutes: f"{significant(minutes)} min", "shorter runs lose to compile time",
        ),
        tile("Payback", "payback_days", lambda days: plural(days, "day"), "if it came true"),
    ]  # fmt: skip
