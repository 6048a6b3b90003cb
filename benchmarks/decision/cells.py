"""One cell: a portfolio, a stress and the rules that play it; seeded workload by workload."""

from __future__ import annotations

import hashlib
import multiprocessing
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decision.characteristics import DENOMINATOR, summarise
from benchmarks.decision.portfolio import draw
from benchmarks.decision.rules import NAIVE, Outcome, play
from compilegate import domain
from compilegate.domain.decision import JUDGE_VERSION

CHUNK = 5
NOTHING = {"percent": None, "se": None, "n": 0}


@dataclass(frozen=True)
class Cell:
    """What to simulate."""

    portfolio: str = "mixed"
    stress: str = "none"
    candidates: int = 2
    workloads: int = 300
    seed: int = 1
    rules: tuple[str, ...] = ("hybrid", *NAIVE)
    max_runs: int | None = None
    production_beside: bool = True

    @property
    def key(self) -> dict[str, Any]:
        """What tells this cell's results from those of another."""
        return {
            "portfolio": self.portfolio,
            "stress": self.stress,
            "candidates": self.candidates,
            "max_runs": self.max_runs,
            "production_beside": self.production_beside,
        }

    @property
    def played(self) -> tuple[str, ...]:
        """The rules asked for, and the one that all GPU-hours are measured against."""
        return tuple(dict.fromkeys((*self.rules, DENOMINATOR)))


def play_workload(cell: Cell, index: int) -> list[Outcome]:
    """Every rule on the same workload, each with chance of its own."""
    truth = np.random.default_rng([cell.seed, _number(cell.portfolio), index])
    workload = draw(truth, cell.portfolio, stress=cell.stress, candidates=cell.candidates)
    return [
        play(
            rule,
            workload,
            np.random.default_rng([cell.seed, _number(cell.portfolio), index, _number(rule)]),
            max_runs=cell.max_runs,
            production_beside=cell.production_beside,
        )
        for rule in cell.played
    ]


def run(cell: Cell, jobs: int, tick: Callable[[int], None]) -> dict[str, Any]:
    """The cell's characteristics; the same whatever the number of processes."""
    outcomes: list[Outcome] = []
    for done, found in enumerate(_played(cell, jobs), start=1):
        outcomes += found
        tick(done)
    rules = summarise(outcomes)
    if cell.portfolio == "regressing":  # an arm that always fails soon has no oracle to equal
        for found in rules.values():
            found.update(net_saving=NOTHING, net_saving_redone=NOTHING)
    size = {"workloads": cell.workloads, "seed": cell.seed, "judge": judge_name()}
    return {**cell.key, **size, "rules": rules}


def judge_name() -> str:
    """The judge's version, and a digest of the code that decides: results name what they are of."""
    folder = Path(domain.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return f"{JUDGE_VERSION} ({digest.hexdigest()[:8]})"


def _played(cell: Cell, jobs: int) -> Iterator[list[Outcome]]:
    tasks = [(cell, index) for index in range(cell.workloads)]
    if jobs <= 1:
        yield from (play_workload(*task) for task in tasks)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap(_task, tasks, chunksize=CHUNK)


def _task(task: tuple[Cell, int]) -> list[Outcome]:
    return play_workload(*task)


def _number(name: str) -> int:
    return zlib.crc32(name.encode())
