"""Evidence with what a job's recorder leaves of its work."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
PLANNED = 2000
WORK = {"steps": PLANNED, "seconds": 0.0, "samples_per_step": 32.0, "tokens_per_step": 4000.0}


def recorded(doc: Document) -> Document:
    """Every run with what a job's recorder leaves of its work; arms differ in nothing but time."""
    for item in doc["arms"]:
        for run in item["runs"]:
            if run["stage"] == "speed":
                run["tokens_per_step"] = 4000.0
                continue
            run.update(work=dict(WORK), steps=PLANNED, seconds=run["wall_seconds"] - 5)
            run["work"]["seconds"] = run["seconds"]
            run["job_seconds"] = run["wall_seconds"] + 40
    return doc
