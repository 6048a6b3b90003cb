"""The history for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from compilegate.report.history.model import Event
from compilegate.report.history.sentences import headline, label, lede
from compilegate.report.history.sums import Sum
from compilegate.report.history.view import HistoryView

SCHEMA = 1


def document(view: HistoryView, events: Sequence[Event], sums: dict[str, Sum]) -> dict[str, Any]:
    """Headline, flag, every run, every event, savings and sums."""
    flag, savings = view.flag, view.savings
    return {
        "schema": SCHEMA,
        "workload": view.source["name"],
        "stage": view.source["context"]["stage"],
        "simulated": view.source["context"].get("simulated"),
        "simulated_clock": view.ahead,
        "label": label(view)[0],
        "headline": headline(view),
        "lede": lede(view),
        "flag": {"enabled": flag.enabled, "state": flag.state, "candidate": flag.candidate,
                 "since": flag.since},
        "promoted_by_trial": view.promotion.trial if view.promotion else None,
        "quality": dict(view.quality),
        "runs": [
            {
                "number": place, "run": run.run, "job": run.job, "arm": run.arm, "why": run.why,
                "confirm": run.confirm, "counts": run.counts, "finished": run.finished,
                "metric": run.result.get("metric"), "wall_seconds": run.result.get("wall_seconds"),
                "usd": run.usd, "started_at": run.started_at, "flag_state": state.state,
                "scheduled": run.details.get("scheduled"), "injected_fault": view.fault_of(run),
                "launched_by": run.launched_by, "reason": run.reason,
            }
            for place, (run, state) in enumerate(zip(view.runs, view.states, strict=True), 1)
        ],
        "events": [_event(event) for event in events],
        "savings": None if savings is None else asdict(savings),
        "sums": {key: asdict(one) for key, one in sums.items()},
    }  # fmt: skip


def _event(event: Event) -> dict[str, Any]:
    kept = ("at", "kind", "title", "text", "tone", "place", "links")
    return {key: value for key, value in asdict(event).items() if key in kept}
