"""The story for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from compilegate.report.story.model import Event
from compilegate.report.story.sentences import headline, label, lede
from compilegate.report.story.sums import Sum
from compilegate.report.story.tale import Tale

SCHEMA = 1


def document(tale: Tale, told: Sequence[Event], sums: dict[str, Sum]) -> dict[str, Any]:
    """Headline, flag, every run, every event, savings and sums."""
    flag, savings = tale.flag, tale.savings
    return {
        "schema": SCHEMA,
        "workload": tale.source["name"],
        "stage": tale.source["context"]["stage"],
        "simulated": tale.source["context"].get("simulated"),
        "simulated_clock": tale.ahead,
        "label": label(tale)[0],
        "headline": headline(tale),
        "lede": lede(tale),
        "flag": {"enabled": flag.enabled, "state": flag.state, "candidate": flag.candidate,
                 "since": flag.since},
        "promoted_by_trial": tale.promotion["trial"] if tale.promotion else None,
        "quality": dict(tale.quality),
        "runs": [
            {
                "number": place, "run": run.run, "job": run.job, "arm": run.arm, "why": run.why,
                "confirm": run.confirm, "counts": run.counts, "finished": run.finished,
                "metric": run.result.get("metric"), "wall_seconds": run.result.get("wall_seconds"),
                "usd": run.usd, "started_at": run.started_at, "flag_state": state.state,
                "scheduled": run.details.get("scheduled"), "injected_fault": tale.fault_of(run),
                "launched_by": run.launched_by, "reason": run.reason,
            }
            for place, (run, state) in enumerate(zip(tale.runs, tale.states, strict=True), 1)
        ],
        "events": [_event(event) for event in told],
        "savings": None if savings is None else asdict(savings),
        "sums": {key: asdict(found) for key, found in sums.items()},
    }  # fmt: skip


def _event(event: Event) -> dict[str, Any]:
    kept = ("at", "kind", "title", "text", "tone", "place", "links")
    return {key: value for key, value in asdict(event).items() if key in kept}
