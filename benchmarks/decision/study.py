"""The study: which cells are simulated, what is computed of each, and what has to be reached.

    python -m benchmarks.decision [--only NAME ...] [--share 1.0] [--jobs 2] [--output FILE]

Every cell is seeded workload by workload, so that cells which differ in the judge's policy alone
play the same workloads. What was played is kept (played.py).
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.decision.play import ARTICLE, MODES, Outcome
from benchmarks.decision.provenance import judge_name
from benchmarks.decision.screening import Screening
from benchmarks.decision.truth import USD_PER_DEVICE_HOUR

RESULTS = Path(__file__).with_name("results.json")
Figure = dict[str, float | int | None]


@dataclass(frozen=True)
class Cell:
    """What is simulated; ``strict``: no equivalence check counts, as with judge 2.

    ``only_compiler``: no candidate changes anything else; else every second one does.
    """

    name: str
    workloads: int
    mode: str = "hybrid"
    portfolio: str = "mixed"
    stress: str = "none"
    strict: bool = False
    only_compiler: bool = False
    screening: Screening = field(default_factory=Screening)

    def of(self, share: float) -> Cell:
        """The same cell with a share of its workloads."""
        return replace(self, workloads=max(1, round(self.workloads * share)))

    @property
    def key(self) -> dict[str, Any]:
        """What its outcomes depend on."""
        return {
            name: value for name, value in asdict(self).items() if name not in ("name", "workloads")
        }

    @property
    def article(self) -> Cell | None:
        """The article's procedure on the same workloads; None where nothing is compared with it."""
        if (self.portfolio, self.stress) != ("mixed", "none"):
            return None
        return Cell(ARTICLE, self.workloads, ARTICLE, only_compiler=self.only_compiler)


# Fleets in which both candidates change the compiler alone, or the second one the batch as well;
# how many workloads of each.
FLEETS = {"compilers": 2000, "mixed": 1000}
EDGE, OTHER = 2000, 400
# Worlds beside the plain one, in which both arms lose the margin and in which a fleet is trained.
LATER = ("from 2", "from 3", "from 4", "from 6", "from 9")
EDGES = ("trend2", "trend5", "walk", "nights", "variance", "diverging", "rounded", "t3", "skew",
         *LATER)  # fmt: skip
OTHERS = ("walk", "nights", "variance", "diverging", "rounded", "from 4")
# Production runs that are left: from so many on.
RUNS_LEFT = (8, 24, 52, 156)
TEN_PER_CENT = Screening(faults=29)  # rho 0.098: the level of two candidates is 0.25 as well
LATE = Screening(late=True)
BLIND = Screening(rho=1.0)


def _edge(name: str, workloads: int = EDGE, **more: Any) -> Cell:
    keys = {"portfolio": "boundary_quality", "only_compiler": True, **more}
    return Cell(name, workloads, **keys)


def _other(name: str, **more: Any) -> Cell:
    return Cell(f"compilers, {name}", OTHER, only_compiler=True, **more)


def cells() -> Iterator[Cell]:
    """Every cell, the most important first."""
    for fleet, workloads in FLEETS.items():
        for mode in (*MODES, ARTICLE):
            name, only = f"{fleet}, {mode}", fleet == "compilers"
            yield Cell(name, workloads, mode, only_compiler=only)
            if mode != ARTICLE:
                yield Cell(f"{name}, strict", workloads // 2, mode, strict=True, only_compiler=only)
    for mode in MODES:
        yield _edge(f"edge, {mode}", mode=mode)
        yield _edge(f"edge, {mode}, strict", EDGE // 2, mode=mode, strict=True)
    for stress in EDGES:
        yield _edge(f"edge, {stress}", stress=stress)
    yield _edge("edge, from 4, strict", OTHER, stress="from 4", strict=True)
    yield _edge("edge, late", screening=LATE)
    yield _edge("edge, rho 0.1", screening=TEN_PER_CENT)
    yield _edge("edge, rho 0.1, walk", screening=TEN_PER_CENT, stress="walk")
    yield _edge("edge, blind", OTHER, screening=BLIND)
    yield Cell("edge, slow", OTHER, portfolio="boundary_speed", only_compiler=True)
    for stress in OTHERS:
        yield _other(stress, stress=stress)
    yield _other("late", screening=LATE)
    yield _other("rho 0.25", screening=Screening(faults=11))
    yield _other("blind", screening=BLIND)


@dataclass(frozen=True)
class Target:
    """A figure of the fleets in one mode and what it has to be; ``least`` where more is better."""

    words: str
    mode: str
    figure: str
    bound: float
    least: bool = False


TARGETS = (
    Target("good missed, %", "hybrid", "good_missed", 8),
    Target("good missed where provable, %", "hybrid", "provable_missed", 1.5),
    Target("net saving, % of an oracle's", "hybrid", "net_saving", 82, least=True),
    Target(
        "of an oracle that turns on good arms alone", "hybrid", "net_saving_of_good", 82, least=True
    ),
    Target("net saving", "canary", "net_saving", 85, least=True),
    Target(
        "of an oracle that turns on good arms alone", "canary", "net_saving_of_good", 85, least=True
    ),
    Target("net saving", "shadow", "net_saving", 74, least=True),
    Target(
        "of an oracle that turns on good arms alone", "shadow", "net_saving_of_good", 74, least=True
    ),
    Target("GPU-hours of the trial, % of the article's", "hybrid", "gpu_hours", 5),
    Target("good ended as worse, %", "hybrid", "ended_worse", 1.5),
    Target("good ended as worse, %", "shadow", "ended_worse", 1.5),
    Target("faultless promotions reverted, %", "hybrid", "wrong_reverts", 1),
    Target("true speed-up below the 95 % interval, %", "hybrid", "below_interval", 3),
)
# Both candidates lose the margin and change the compiler alone; faults are caught at rho.
EDGE_BOUND = 3.0


def figures(outcomes: Sequence[Outcome], article: Sequence[Outcome]) -> dict[str, Any]:
    """A cell's figures, in per cent; ``article`` is what its procedure does, or empty."""
    good = [one for one in outcomes if one.has_good]
    clean = [one for one in outcomes if one.promoted_clean]
    claims = [one for one in outcomes if one.interval is not None and one.true_speedup is not None]
    saved = [one.saved_usd for one in outcomes]
    return {
        "promoted": share(outcomes, lambda one: one.promoted),
        "bad_promoted": share(outcomes, lambda one: one.promoted_bad),
        "bad_kept": share(outcomes, lambda one: one.promoted_bad and not one.reverted),
        "good_missed": share(good, missed),
        "provable_missed": share([one for one in good if one.is_provable], missed),
        "ended_worse": percent_of(
            [float(one.good_ended_worse) for one in good], [float(one.good_arms) for one in good]
        ),
        "wrong_reverts": share(clean, lambda one: one.reverted),
        "below_interval": share(claims, lambda one: _place(one) < 0),
        "above_interval": share(claims, lambda one: _place(one) > 0),
        "gpu_hours": percent_of(
            [one.gpu_hours for one in outcomes if article], [one.gpu_hours for one in article]
        ),
        "net_saving": percent_of(saved, [one.oracle_usd for one in outcomes]),
        "net_saving_by_runs": _by_runs(outcomes, lambda one: one.saved_usd),
        "net_saving_of_good": percent_of(saved, [one.good_usd for one in outcomes]),
        "net_saving_of_most": percent_of(saved, [one.most_usd for one in outcomes]),
        "lost": lost(outcomes),
        "by_runs_left": [
            {"from": low, **_savings([one for one in outcomes if low <= one.runs_left < high])}
            for low, high in itertools.pairwise((*RUNS_LEFT, math.inf))
        ],
        "weeks": mean([one.weeks for one in outcomes]),
        "bad_runs": mean([float(one.bad_runs) for one in outcomes]),
        "missed_by": _reasons(one for one in good if missed(one)),
    }


def _by_runs(outcomes: Sequence[Outcome], usd: Callable[[Outcome], float]) -> Figure:
    """In % of an oracle's saving, every run counting the same."""
    return percent_of(
        [usd(one) / one.run_usd for one in outcomes],
        [one.oracle_usd / one.run_usd for one in outcomes],
    )


def _savings(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    return {
        "good_missed": share([one for one in outcomes if one.has_good], missed),
        "saved": _by_runs(outcomes, lambda one: one.saved_usd),
        "ceiling": _by_runs(outcomes, lambda one: one.good_usd),
    }


def lost(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """Where an oracle's saving goes, in % of it, every run counting the same."""
    return {
        "not_good": _by_runs(outcomes, lambda one: one.oracle_usd - one.good_usd),
        "missed": _by_runs(outcomes, lambda one: one.good_usd * missed(one)),
        "trial": _by_runs(outcomes, lambda one: one.gpu_hours * USD_PER_DEVICE_HOUR),
        "later": _by_runs(outcomes, _after_the_start),
    }


def _after_the_start(outcome: Outcome) -> float:
    """Of a good arm's saving what is not the trial's price: above all the runs before it is on."""
    spent = outcome.gpu_hours * USD_PER_DEVICE_HOUR
    return outcome.good_usd * (not missed(outcome)) - outcome.saved_usd - spent


def missed(outcome: Outcome) -> bool:
    """Whether no arm was promoted, or a bad one."""
    return not outcome.promoted or outcome.promoted_bad


def _reasons(outcomes: Iterator[Outcome]) -> dict[str, int]:
    return dict(Counter(code for one in outcomes for code in one.codes).most_common())


def _place(outcome: Outcome) -> int:
    """-1 where the true ratio lies below the interval, 1 above it, 0 inside."""
    low, high = outcome.interval or (0.0, math.inf)
    truth = outcome.true_speedup or low
    return (truth > high) - (truth < low)


def share(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> Figure:
    """Per cent of the outcomes for which it holds, its standard error and their number."""
    n = len(outcomes)
    if n == 0:
        return {"percent": None, "se": None, "n": 0}
    p = sum(holds(outcome) for outcome in outcomes) / n
    return {"percent": 100 * p, "se": 100 * math.sqrt(p * (1 - p) / n), "n": n}


def percent_of(parts: Sequence[float], wholes: Sequence[float]) -> Figure:
    """100 sum(parts) / sum(wholes) and its standard error over workloads."""
    n, whole = len(parts), math.fsum(wholes)
    if whole == 0:
        return {"percent": None, "se": None, "n": n}
    ratio = math.fsum(parts) / whole
    apart = math.fsum((a - ratio * b) ** 2 for a, b in zip(parts, wholes, strict=True))
    return {"percent": 100 * ratio, "se": 100 * math.sqrt(apart) / abs(whole), "n": n}


def mean(values: Sequence[float]) -> Figure:
    """Their mean with its standard error."""
    n, centre = len(values), math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - centre) ** 2 for value in values) / max(n - 1, 1))
    return {"mean": centre, "se": spread / math.sqrt(n), "n": n}


def keep(cell: Cell, computed: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Put a cell's figures in the place of its older ones; returns what is kept of it."""
    kept = {"name": cell.name, **cell.key, "workloads": cell.workloads, "judge": judge_name(),
            "figures": computed}  # fmt: skip
    old = json.loads(path.read_text())["cells"] if path.exists() else []
    by_name = {one["name"]: one for one in old} | {cell.name: kept}
    names = [one.name for one in cells()]
    lines = ",\n".join(json.dumps(by_name[name]) for name in names if name in by_name)
    path.write_text(f'{{"cells": [\n{lines}\n]}}\n')
    return kept
