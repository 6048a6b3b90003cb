"""The key figures of a history."""

from __future__ import annotations

import math

from compilegate.domain.arithmetic import mean, ratio
from compilegate.domain.formats import (
    UNKNOWN,
    money,
    percent,
    plural,
    shown,
    significant,
)  # fmt: skip
from compilegate.domain.production.savings import failed, wall_seconds_of
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.history.sentences import quality_difference
from compilegate.report.history.view import HistoryView
from compilegate.report.metric_cards import MetricCard


def metric_cards(view: HistoryView) -> list[MetricCard]:
    """Where it stands, how production does, what it is worth; empty before the first run."""
    if not view.runs:
        return []
    return [_flag(view), _runs(view), _quality(view), _speed(view), _saved(view)]


def _flag(view: HistoryView) -> MetricCard:
    flag = view.flag
    since = str(flag.since or "").replace("T", " ")[:16]
    note = f"state {flag.state}, since {since}" if view.flags else "never changed"
    return MetricCard("Flag", "on" if flag.enabled else "off", note)


def _runs(view: HistoryView) -> MetricCard:
    lost = sum(failed(run) for run in view.runs)
    parts = [f"{count} {arm}" for arm, count in view.counts.items()]
    parts += [f"{lost} failed"] if lost else []
    return MetricCard("Production runs", str(len(view.runs)), ", ".join(parts))


def _quality(view: HistoryView) -> MetricCard:
    name = f"{view.metric} since it was turned on"
    difference = quality_difference(view)
    if difference is None:
        return MetricCard(name, UNKNOWN, "Needs runs of both arms since then.")
    margin = shown(view.quality.get("margin"), significant)
    goal = statements.BETTER.get(str(view.quality.get("goal")))
    parts = ("mean of all its runs", f"margin {margin}", goal)
    return MetricCard(name, difference, "; ".join(part for part in parts if part))


def _speed(view: HistoryView) -> MetricCard:
    name = "Speed-up in production"
    gains = [gain for _, gain in speedups(view)]
    if not gains:
        return MetricCard(name, UNKNOWN, "Needs runs of both arms.")
    average = math.exp(mean([math.log(gain) for gain in gains]))
    note = f"full jobs, {plural(len(gains), 'run')}"
    expected = view.expected_speed
    note += f"; trial {statements.speedup(expected)}" if expected else ""
    return MetricCard(name, ratio(average), note)


def _saved(view: HistoryView) -> MetricCard:
    name, savings = "Saved so far", view.savings
    if savings is None:
        return MetricCard(name, UNKNOWN, "Nothing has been turned on.")
    if savings.saved_usd is None:
        return MetricCard(name, UNKNOWN, "No run of it has a price and a baseline to compare with.")
    parts = [plural(savings.priced_runs, "run")]
    if savings.expected_usd:
        parts.append(f"expected {money(savings.expected_usd)}")
        share = savings.share_of_estimate
        parts += [f"{percent(share)} of it"] if share is not None else []
    return MetricCard(name, money(savings.saved_usd), "; ".join(parts))


def speedups(view: HistoryView) -> list[tuple[int, float]]:
    """(run number, speed-up against the rolling baseline) of every finished candidate's run."""
    gains = []
    for place, (run, standard) in enumerate(zip(view.runs, view.standards, strict=True), 1):
        wall = wall_seconds_of(run)
        if wall is None or standard.wall_seconds is None:
            continue
        if run.arm != BASELINE and run.finished and run.counts:
            gains.append((place, standard.wall_seconds / wall))
    return gains
