"""Every rule on the same trials, and what became of them."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.decision.provenance import deciding, digest, judge_name
from benchmarks.decision.study import mean
from benchmarks.referee.groups import Group, groups
from benchmarks.referee.rules import rules
from benchmarks.referee.trial import Rule, draw, promotes

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
# The margin in sd of a group: how many trials each group gets with it. Small margins take long.
TRIALS: Mapping[float, int] = {0.5: 25, 1.0: 100, 1.5: 100, 2.0: 100}
# What the results depend on beside the judge and the driver that asks it.
DECIDING = ("groups.py", "trial.py", "rules/*.py", "data/*.csv")
RUNS = ("candidate_runs", "baseline_runs", "other")
DIGITS = 4

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Played:
    """What one rule made of one trial; ``loses``: the candidate is worse by the margin."""

    rule: str
    group: str
    margin: float
    loses: bool
    promoted: bool
    candidate_runs: int
    baseline_runs: int
    other: float


def play(judges: Mapping[str, Rule], group: Group, margin: float, index: int) -> list[Played]:
    """The trial of that number, decided by each rule, with and without the loss."""
    outcomes = []
    for (name, rule), loses in product(judges.items(), (True, False)):
        trial = draw(group, margin, index, loses=loses)
        promoted = promotes(rule, trial)
        spent = {key: getattr(trial, key) for key in RUNS}
        outcomes.append(Played(name, group.name, margin, loses, promoted, **spent))
    return outcomes


def rounds() -> list[tuple[float, int]]:
    """Margin and number of every trial, those of all margins side by side."""
    every = [(margin, index) for margin, trials in TRIALS.items() for index in range(trials)]
    return sorted(every, key=lambda trial: ((trial[1] + 1) / TRIALS[trial[0]], trial[0]))


def played(minutes: float, jobs: int) -> list[Played]:
    """The study's trials, of every group alike, as many as are done in that time."""
    end = time.monotonic() + 60 * minutes
    outcomes: list[Played] = []
    with multiprocessing.Pool(jobs) as pool:
        for decided in pool.imap(_round, rounds()):
            outcomes += decided
            if time.monotonic() > end:
                break
    return outcomes


def _round(numbered: tuple[float, int]) -> list[Played]:
    return [outcome for group in _groups() for outcome in play(rules(), group, *numbered)]


@cache
def _groups() -> list[Group]:
    return groups()


def results(outcomes: Sequence[Played], kept: Sequence[Group]) -> dict[str, Any]:
    """What is kept: promotions by group, runs by their means, and what they depend on."""
    names = [group.name for group in kept]
    return {
        "judge": judge_name(),
        "rules": rules_digest(),
        "groups": [
            {"name": group.name, "runs": len(group.metrics), "sd": float(f"{group.sd:.3g}")}
            for group in kept
        ],
        "cells": list(_cells(outcomes, names)),
    }


def _cells(outcomes: Sequence[Played], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    by_cell: dict[tuple[str, float, bool], list[Played]] = {}
    for outcome in outcomes:
        cell = (outcome.rule, outcome.margin, outcome.loses)
        by_cell.setdefault(cell, []).append(outcome)
    for (rule, margin, loses), trials in by_cell.items():
        yield {
            "rule": rule,
            "margin": margin,
            "loses": loses,
            "trials": len(trials) // len(names),
            "promoted": [
                sum(trial.promoted for trial in trials if trial.group == name) for name in names
            ],
            **{key: _mean([getattr(trial, key) for trial in trials]) for key in RUNS},
        }


def _mean(values: Sequence[float]) -> dict[str, float]:
    estimate = mean(values)
    return {key: round(estimate[key], DIGITS) for key in ("mean", "se")}


def rules_digest() -> str:
    """SHA-256 of the data, and of what decides in the rules and in how trials are drawn."""
    contents = {}
    for place in (place for pattern in DECIDING for place in HERE.glob(pattern)):
        content = place.read_bytes()
        name = place.relative_to(HERE).as_posix()
        contents[name] = deciding(content) if place.suffix == ".py" else content
    return digest(contents)


def keep(kept: Results, path: Path = RESULTS) -> None:
    """Write the results, one cell a line."""
    cells = ",\n".join(json.dumps(cell) for cell in kept["cells"])
    head = json.dumps({key: value for key, value in kept.items() if key != "cells"})
    path.write_text(f'{head[:-1]}, "cells": [\n{cells}\n]}}\n')


def kept_results(path: Path = RESULTS) -> Results:
    """The results that are kept."""
    kept: Results = json.loads(path.read_text())
    return kept
