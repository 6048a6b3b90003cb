"""What has been played is kept, workload by workload, so that a stopped simulation goes on.

A file a cell under build/decision, in a folder named for the judge that decided and for the code
of the simulation: a result of another judge, or of another world, is never taken for this one's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.decision.cells import Cell, play_workloads
from benchmarks.decision.provenance import SHOWN, digest, judge_name
from benchmarks.decision.rules import Outcome

FOLDER = Path(__file__).parents[2] / "build" / "decision"
# What makes the worlds and follows the judge through them.
WORLDS = ("cells", "driver", "naive", "noise", "portfolio", "rules", "truth", "world")


def played(cell: Cell, jobs: int, folder: Path = FOLDER) -> list[Outcome]:
    """Every outcome of the cell, in order; only what is not kept yet is simulated."""
    place = folder / _folder() / f"{_slug(cell)}.jsonl"
    kept = dict(_read(place))
    missing = [index for index in range(cell.workloads) if index not in kept]
    if missing:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a") as file:
            file.write("\n")  # ends a line that was cut off
            for index, outcomes in play_workloads(cell, missing, jobs):
                kept[index] = outcomes
                line = {"index": index, "outcomes": [asdict(outcome) for outcome in outcomes]}
                file.write(json.dumps(line) + "\n")
                file.flush()
    return list(chain.from_iterable(kept[index] for index in range(cell.workloads)))


def _read(place: Path) -> Iterator[tuple[int, Sequence[Outcome]]]:
    """The workloads of a file, without a line that was cut off."""
    for line in place.read_text().splitlines() if place.exists() else ():
        with suppress(json.JSONDecodeError):
            kept = json.loads(line)
            yield kept["index"], [_outcome(outcome) for outcome in kept["outcomes"]]


def _outcome(kept: dict[str, Any]) -> Outcome:
    tuples = {field.name for field in fields(Outcome) if "tuple" in str(field.type)}
    return Outcome(
        **{
            name: tuple(value) if name in tuples and value is not None else value
            for name, value in kept.items()
        }
    )


def _slug(cell: Cell) -> str:
    words = [*map(str, cell.key.values()), str(cell.seed), *cell.rules]
    return "_".join(re.sub(r"[^\w.-]", "-", word) for word in words)


@cache
def _folder() -> str:
    own = {f"{name}.py": (Path(__file__).parent / f"{name}.py").read_bytes() for name in WORLDS}
    return re.sub(r"[^\w.-]+", "-", f"{judge_name()}-{digest(own)[:SHOWN]}")
