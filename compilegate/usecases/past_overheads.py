"""What compiling cost a run in this workload's earlier trials."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.eligibility import MeasuredOverhead
from compilegate.domain.errors import NotFoundError
from compilegate.ports import ObjectStore, Services

# Older ones would be of another model before they would be of use.
TRIALS_READ = 3


def past_overheads(workload: str, services: Services) -> tuple[MeasuredOverhead, ...]:
    """Compile seconds that the last decided trials measured, oldest first."""
    decided = [
        entry for entry in services.ledger.entries(workload) if entry.get("kind") == "decision"
    ]
    return tuple(
        found
        for entry in decided[-TRIALS_READ:]
        for found in _measured(services.store, workload, entry)
    )


def _measured(
    store: ObjectStore, workload: str, entry: Mapping[str, Any]
) -> Iterator[MeasuredOverhead]:
    """One trial's arms; nothing where it ended before a plan, or its documents are gone."""
    trial = str(entry["trial"])
    try:
        decision = json.loads(store.get(str(entry["decision_key"])))
        plan = json.loads(store.get(naming.record_key(workload, trial, "plan")))
    except NotFoundError:
        return
    arms = {arm["name"]: arm for arm in plan["arms"]}
    for figures in decision.get("arms") or ():
        arm = arms.get(figures["name"])
        # A compiler that counted no time at all was not measured.
        warm, cold = (figures.get(f"compile_seconds_{key}") or None for key in ("warm", "cold"))
        if arm is None or arm["compiler"] == "none" or (warm, cold) == (None, None):
            continue
        yield MeasuredOverhead(
            trial=trial,
            compiler=arm["compiler"],
            compile_mode=arm.get("compile_mode"),
            image=arm["image"],
            warm_seconds=warm,
            cold_seconds=cold,
        )
