"""How often does the check of an alarm turn a candidate off, and after how many pairs?

The shipped check (domain/judging/monitor.py) on independent normal runs of both arms, by what
the candidate loses, how much the metric varies, and how well that is known beforehand.

    python -m benchmarks.decision.alarm_check [--paths 10000]

The table in benchmarks/decision/README.md is made from the file that it writes.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decision.provenance import judge_name
from compilegate.domain.judging.monitor import FIRST, LAST, Outcome, look, mean_fall, spread_of

RESULTS = Path(__file__).with_name("alarm_check.json")
SEED = 11
# In margins.
LOSSES = (0.0, 0.25, 0.5, 0.75, 1.0)
SPREADS = (0.3, 0.6, 1.0, 1.5)
# Of the known spread: a trial of three runs an arm, and one with 24 baseline runs known.
DEGREES = (4, 26)


def check(loss: float, spread: float, df: int, rng: np.random.Generator) -> tuple[Outcome, int]:
    """One check, pair by pair, until it ends; its outcome and how many pairs it took."""
    known = spread * math.sqrt(rng.chisquare(df) / df)
    theirs, ours = rng.normal(0, spread, LAST).tolist(), rng.normal(-loss, spread, LAST).tolist()
    for pairs in range(FIRST, LAST + 1):
        mine, today = ours[:pairs], theirs[:pairs]
        fall = mean_fall(mine, today, earlier=None)
        assert fall is not None
        own = spread_of(known, mine, today)
        said = look(fall, shift=1.0, tolerated=0.5, spread=own, last=pairs == LAST)
        if said.outcome is not Outcome.OPEN:
            return said.outcome, pairs
    raise AssertionError("the last pair decides")


def cell(loss: float, spread: float, df: int, paths: int) -> dict[str, Any]:
    """The share turned off, in per cent with its standard error, and the mean number of pairs."""
    rng = np.random.default_rng([SEED, df, round(100 * loss), round(100 * spread)])
    ends = [check(loss, spread, df, rng) for _ in range(paths)]
    share = sum(outcome is Outcome.REVERT for outcome, _ in ends) / paths
    return {
        "loss": loss, "spread": spread, "df": df, "n": paths, "off": 100 * share,
        "se": 100 * math.sqrt(share * (1 - share) / paths),
        "pairs": sum(pairs for _, pairs in ends) / paths,
    }  # fmt: skip


def main() -> None:
    """Simulate every cell and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.alarm_check")
    parser.add_argument("--paths", type=int, default=10_000)
    paths = parser.parse_args().paths
    cells = [cell(loss, spread, df, paths) for df in DEGREES for spread in SPREADS
             for loss in LOSSES]  # fmt: skip
    kept = {"seed": SEED, "judge": judge_name(), "cells": cells}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
