"""The kept results, a record for each card and workload; only what a GPU showed gets in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().with_name("results.json")
SIMULATED = "simulated on a processor"


def read(path: Path = RESULTS) -> dict[str, Any]:
    """All records, by card and workload."""
    found: dict[str, Any] = {"schema": 1, "cards": {}}
    return json.loads(path.read_text()) if path.exists() else found


def keep(record: Mapping[str, Any], path: Path = RESULTS) -> None:
    """Put a workload's record in the place of an earlier one of the same card.

    Raises ValueError for a record of a processor where a GPU's are kept.
    """
    card = record["environment"].get("gpu")
    if path.resolve() == RESULTS and (record["simulated"] or not card):
        raise ValueError(
            f"the record of {record['workload']} is no GPU's: keep it in a file of its own"
        )
    found = read(path)
    found["cards"].setdefault(card or SIMULATED, {})[record["workload"]] = record
    fresh = path.with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps(found, indent=1) + "\n")
    fresh.replace(path)
