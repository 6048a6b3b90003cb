"""Bounds of sound compilations, and the table of the judge. Needs no torch.

Bounds come from sound compilations with even seeds: HEADROOM times the largest ratio of a part in
any of them, since a family that is not here may vary more; those with odd seeds set no bound. No
fault takes part. Other kinds of device round in other ways, and have bounds of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HEADROOM = 3.0
LEAST_BOUND = 3.0  # PyTorch's own accuracy test of compilers allows 2 to 3
FACTS = Path(__file__).resolve().parents[2] / "compilegate" / "facts" / "equivalence.json"


def bounds_of(sound: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """By kind of device, part and arithmetic; where one is not finite there is none."""
    largest: dict[str, float] = {}
    for record in sound:
        if record["seed"] % 2 == 0:
            for part in record["document"]["parts"]:
                kind = record["document"]["class"]["device"].partition(" ")[0]
                name = f"{kind}.{part['part']}.{part['arithmetic']}"
                ratio = float("inf") if part["ratio"] is None else part["ratio"]
                largest[name] = max(largest.get(name, LEAST_BOUND / HEADROOM), ratio)
    return {name: round(HEADROOM * one, 1) for name, one in sorted(largest.items()) if one < 1e6}


def table_of(kept: Iterable[Mapping[str, Any]], check: str) -> dict[str, Any]:
    """What the facts state by the results of this version of the check, on all devices."""
    current = [one for one in kept if one["check"] == check]
    tables = [one["table"] for one in current]
    names = sorted({name for table in tables for name in table["bounds"]})
    return {
        "as_of": max((one["date"] for one in current), default=None),
        "check": check,
        # Two devices of a kind share what is the larger.
        "bounds": {n: max(t["bounds"][n] for t in tables if n in t["bounds"]) for n in names},
        "shares": {},
        "classes": [_row(row) for table in tables for row in table["classes"] if row["faults"]],
    }


def write_facts(kept: Iterable[Mapping[str, Any]], check: str) -> None:
    """Bring the facts up to date."""
    document = json.loads(FACTS.read_text(encoding="utf-8")) | _row(table_of(kept, check))
    FACTS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}
