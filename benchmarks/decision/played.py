"""What has been played is kept, workload by workload, so that a stopped simulation goes on.

A file a cell under build/decision, in a folder named for the judge that decided and for the code
of the simulation: a result of another judge, or of another world, is never taken for this one's.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.decision.play import Outcome, play
from benchmarks.decision.portfolio import draw
from benchmarks.decision.provenance import SHOWN, digest, judge_name
from benchmarks.decision.study import Cell
from benchmarks.decision.truth import Workload

FOLDER = Path(__file__).parents[2] / "build" / "decision"
# What makes the worlds and follows the judge through them.
SIMULATION = ("article", "driver", "noise", "play", "portfolio", "screening", "truth", "world")
SEED = 29
CHUNK = 5


def drawn(cell: Cell, index: int) -> Workload:
    """The cell's workload of that number."""
    return draw(
        np.random.default_rng([SEED, _number(cell.portfolio), index]),
        cell.portfolio,
        stress=cell.stress,
        only_compiler=cell.only_compiler,
    )


def play_workload(cell: Cell, index: int) -> Outcome:
    """The workload of that number; its chance is the same whatever the mode and the policy."""
    chance = np.random.default_rng([SEED, _number(cell.portfolio), index, 1])
    return play(cell.mode, drawn(cell, index), chance, cell.screening, strict=cell.strict)


def played(cell: Cell, jobs: int, folder: Path = FOLDER) -> list[Outcome]:
    """Every outcome of the cell, in order; only what is not kept yet is simulated."""
    name = re.sub(r"[^\w.-]+", "-", f"{cell.name}-{_number(json.dumps(cell.key)):08x}")
    place = folder / _folder() / f"{name}.jsonl"
    kept = dict(_read(place))
    missing = [index for index in range(cell.workloads) if index not in kept]
    if missing:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a") as file:
            file.write("\n")  # ends a line that was cut off
            for index, outcome in _play_all(cell, missing, jobs):
                kept[index] = outcome
                file.write(json.dumps({"index": index, "outcome": asdict(outcome)}) + "\n")
                file.flush()
    return [kept[index] for index in range(cell.workloads)]


def _play_all(cell: Cell, indexes: Sequence[int], jobs: int) -> Iterator[tuple[int, Outcome]]:
    tasks = [(cell, index) for index in indexes]
    if jobs <= 1:
        yield from map(_task, tasks)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap(_task, tasks, chunksize=CHUNK)


def _task(task: tuple[Cell, int]) -> tuple[int, Outcome]:
    return task[1], play_workload(*task)


def _read(place: Path) -> Iterator[tuple[int, Outcome]]:
    """The workloads of a file, without a line that was cut off."""
    for line in place.read_text().splitlines() if place.exists() else ():
        with suppress(json.JSONDecodeError):
            kept = json.loads(line)
            outcome = kept["outcome"]
            for name in ("codes", "interval"):
                if outcome[name] is not None:
                    outcome[name] = tuple(outcome[name])
            yield kept["index"], Outcome(**outcome)


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


@cache
def _folder() -> str:
    own = {name: Path(__file__).with_name(f"{name}.py").read_bytes() for name in SIMULATION}
    return re.sub(r"[^\w.-]+", "-", f"{judge_name()}-{digest(own)[:SHOWN]}")
