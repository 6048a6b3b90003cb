"""What the quality gate's looks spend in the designs and worlds that trials really have.

calibrate.py finds the look constants. Here they meet every design alone, candidates that vary
more than the baseline, and a metric that moves while the trial lasts; each at a loss of exactly
the margin, at every level that a candidate may have, in the worst of five lengths of history and
three last looks. Where the history lies makes no difference, since only its spread counts.
Giving up, which only removes passes, is left out.

    python -m benchmarks.decision.levels [--paths 400000] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decision.calibrate import LEVELS
from benchmarks.decision.gate import (
    DESIGNS,
    HISTORIES,
    Array,
    Sample,
    achieved,
    pass_levels,
    statistic,
)
from compilegate.domain.judging.design import CALIBRATED, SCHEDULE

LEVELS_FILE = Path(__file__).with_name("levels.json")
LAST_LOOKS = (12, 36, 96)
SEED = 5
CHUNK = 10_000
Draw = Callable[[np.random.Generator, int, int], Array]


@dataclass(frozen=True)
class Case:
    """One row: what is drawn, and in which designs; the worst of them is kept."""

    words: str
    draws: tuple[Draw, ...]


def cases() -> tuple[Case, ...]:
    """Every design alone, then every broken assumption in the worst design."""
    return (
        *(
            Case(f"{design} ({words})", (partial(_drawn, design=design),))
            for design, words in DESIGNS.items()
        ),
        *(
            Case(f"candidate's sd {spread:g} times the baseline's", _in_designs(spread=spread))
            for spread in (1.41, 2.0)
        ),
        *(
            Case(f"metric rising by {trend:g} sd a run", (partial(moving, trend=trend),))
            for trend in (0.02, 0.05)
        ),
        Case("metric walking by 0.15 sd a run", (partial(moving, walk=0.15),)),
    )


def _in_designs(**keys: float) -> tuple[Draw, ...]:
    return tuple(partial(_drawn, design=design, **keys) for design in DESIGNS)


def _drawn(
    rng: np.random.Generator, paths: int, history: int, *, design: str, **keys: Any
) -> Array:
    return pass_levels(rng, paths, design=design, history=history, **keys)


def turns(last: int) -> tuple[list[int], list[int]]:
    """When the candidate's and the baseline's runs are made, as the judge asks (next_step.py).

    The arm that trained last begins; a round that completes a look begins with the baseline.
    """
    ours, theirs, mine_last = [], [], True
    for n in range(1, last + 1):
        first = 2 * (n - 1)
        baseline_first = n in SCHEDULE or not mine_last
        ours.append(first + baseline_first)
        theirs.append(first + (not baseline_first))
        mine_last = baseline_first
    return ours, theirs


def moving(
    rng: np.random.Generator, paths: int, history: int, *, trend: float = 0.0, walk: float = 0.0
) -> Array:
    """P(t_df > statistic) where the metric moves with every run, whatever the arm."""
    ours, theirs = turns(SCHEDULE[-1])
    beside = {n: sum(when < ours[n - 1] for when in theirs) for n in SCHEDULE}
    blocks = []
    for _ in range(math.ceil(paths / CHUNK)):
        moved = trend * np.arange(2 * len(ours)) + np.zeros((CHUNK, 1))
        if walk:
            moved = moved + np.cumsum(walk * rng.standard_normal(moved.shape), axis=1)
        x = moved[:, ours] + rng.standard_normal((CHUNK, len(ours)))
        base = moved[:, theirs] + rng.standard_normal((CHUNK, len(theirs)))
        past = Sample.of(rng.standard_normal((CHUNK, history)))
        seen = [(x[:, :n], base[:, : beside[n]]) for n in SCHEDULE]
        blocks.append(np.column_stack([_level(*both, past) for both in seen]))
    return np.concatenate(blocks)


def _level(x: Array, base: Array, past: Sample) -> Array:
    compared = statistic(Sample.of(x), Sample.of(base), past)
    return np.ones(len(x)) if compared is None else compared.level


def measure(paths: int, seed: int) -> dict[str, Any]:
    """For every case and level the worst share of the level that is spent."""
    rows = []
    for case in cases():
        spent = dict.fromkeys(LEVELS, 0.0)
        for history in HISTORIES:
            for draw in case.draws:
                rng = np.random.default_rng([seed, history, zlib.crc32(case.words.encode())])
                _worst(draw(rng, paths, history), spent)
        rows += [_row(case.words, level, spent[level], paths) for level in LEVELS]
        print(f"{case.words}: {spent}", file=sys.stderr, flush=True)
    return {"paths": paths, "seed": seed, "rows": rows}


def _worst(levels: Array, kept: dict[float, float]) -> None:
    for level in LEVELS:
        shares_spent = (
            achieved(levels, n_max, level, CALIBRATED[n_max]) / level for n_max in LAST_LOOKS
        )
        kept[level] = max(kept[level], *shares_spent)


def _row(words: str, level: float, share: float, paths: int) -> dict[str, Any]:
    return {
        "case": words,
        "level": round(level, 6),
        "share": round(share, 4),
        "se": round(math.sqrt((1 - level) / level / paths), 4),
    }


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.levels")
    parser.add_argument("--paths", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", type=Path, default=LEVELS_FILE)
    options = parser.parse_args()
    table = measure(options.paths, options.seed)
    options.output.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
