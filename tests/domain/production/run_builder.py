"""Production runs with the figures that a test names."""

from __future__ import annotations

from typing import Any

from compilegate.domain.records.production import ProductionRun

DAY = 86_400
BEGIN = 1_790_000_000
METRIC = "eval_loss"
BASE_WALL, MINE_WALL = 21_600.0, 15_800.0
BASE_USD, MINE_USD = 216.0, 158.0
RESULT_KEYS = (
    "metric", "metric_name", "wall_seconds", "finished", "applied", "seed", "fingerprint",
    "compiler", "reason",
)  # fmt: skip


def production_run(number: int, arm: str = "compile", **changed: Any) -> ProductionRun:
    """The run of day ``number``; result keys and fields of the run may be changed alike."""
    mine = arm != "baseline"
    wall = MINE_WALL if mine else BASE_WALL
    result = {
        "metric": 0.913, "metric_name": METRIC, "wall_seconds": wall, "finished": True,
        "applied": True, "seed": 17,
    }  # fmt: skip
    result |= {key: changed.pop(key) for key in RESULT_KEYS if key in changed}
    started = changed.pop("started_at", BEGIN + number * DAY)
    values: dict[str, Any] = {
        "run": f"r{number:07d}",
        "job": f"cg-bert-docs-r{number:07d}-p0-r0",
        "arm": arm,
        "started_at": started,
        "ended_at": started + wall,
        "result": result,
        "counts": True,
        "why": "flag" if mine else "scheduled",
        "usd": MINE_USD if mine else BASE_USD,
        "billable_seconds": wall,
    }
    return ProductionRun(**(values | changed))
