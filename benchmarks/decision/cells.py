"""One cell: a portfolio, a stress and the rules that play it; seeded workload by workload.

Its characteristics say how often a rule errs, what it detects, what it costs. Shares carry the
binomial standard error; ratios of sums (GPU-hours, savings) that of the ratio estimator over
workloads.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import statistics
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.decision.portfolio import draw
from benchmarks.decision.provenance import judge_name
from benchmarks.decision.rules import NAIVE, Outcome, play
from benchmarks.decision.truth import Workload

CHUNK = 5
SPREADS = (0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
DENOMINATOR = "article"  # all GPU-hours are in per cent of the article's procedure, to the letter
# Production runs that a whole probation takes with one alarm to check: 12 watched, three pairs.
ROOM = 18
Figure = dict[str, float | int | None]
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
    spread: float | None = None  # of the metric, in margins; None as the portfolio draws it

    def of(self, share: float) -> Cell:
        """The same cell with a share of its workloads."""
        return replace(self, workloads=max(1, round(self.workloads * share)))

    @property
    def key(self) -> dict[str, Any]:
        """What identifies this cell's results."""
        return {
            "portfolio": self.portfolio,
            "stress": self.stress,
            "candidates": self.candidates,
            "max_runs": self.max_runs,
            "production_beside": self.production_beside,
            **({"spread": self.spread} if self.spread else {}),
        }

    @property
    def played(self) -> tuple[str, ...]:
        """The chosen rules, and the one that all GPU-hours are measured against."""
        return tuple(dict.fromkeys((*self.rules, DENOMINATOR)))


def drawn(cell: Cell, index: int) -> Workload:
    """The cell's workload of that number."""
    return draw(
        np.random.default_rng([cell.seed, _number(cell.portfolio), index]),
        cell.portfolio,
        stress=cell.stress,
        candidates=cell.candidates,
        spread=cell.spread,
    )


def play_workload(cell: Cell, index: int) -> list[Outcome]:
    """Every rule on the same workload, each with chance of its own."""
    workload = drawn(cell, index)
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
    for index, played in play_workloads(cell, range(cell.workloads), jobs):
        outcomes += played
        tick(index + 1)
    rules = summarise(outcomes)
    if cell.portfolio == "regressing":  # an arm that always fails soon has no oracle to equal
        for figures in rules.values():
            figures.update(net_saving=NOTHING, net_saving_redone=NOTHING)
    size = {"workloads": cell.workloads, "seed": cell.seed, "judge": judge_name()}
    return {**cell.key, **size, "rules": rules}


def play_workloads(
    cell: Cell, indexes: Sequence[int], jobs: int
) -> Iterator[tuple[int, list[Outcome]]]:
    """The workloads of these numbers, in their order, as they are done."""
    tasks = [(cell, index) for index in indexes]
    if jobs <= 1:
        yield from (_task(task) for task in tasks)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap(_task, tasks, chunksize=CHUNK)


def _task(task: tuple[Cell, int]) -> tuple[int, list[Outcome]]:
    return task[1], play_workload(*task)


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


# ---- characteristics ----------------------------------------------------------------------


def summarise(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Every rule's characteristics over the same workloads."""
    by_rule: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_rule.setdefault(outcome.rule, []).append(outcome)
    reference = [outcome.gpu_hours for outcome in by_rule[DENOMINATOR]]
    return {rule: _rule(played, reference) for rule, played in by_rule.items()}


def figures_of(outcomes: Sequence[Outcome], rule: str) -> dict[str, Any]:
    """One rule's characteristics."""
    return summarise(outcomes)[rule]


def _rule(outcomes: list[Outcome], reference: Sequence[float]) -> dict[str, Any]:
    good = [o for o in outcomes if o.has_good]
    provable = [o for o in good if o.is_provable]
    return {
        "verdicts": _endings(o.verdict for o in outcomes),
        "promoted": share(outcomes, lambda o: o.promoted),
        "kept": share(outcomes, lambda o: o.promoted and not _reverted(o)),
        "false_promotes": share(outcomes, lambda o: o.promoted_bad),
        "good_missed": share(good, _missed),
        "provable_missed": share(provable, _missed),
        "provable_missed_by": _endings(o.verdict for o in provable if _missed(o)),
        "good_rejected": share(good, lambda o: o.verdict == "stay_off"),
        **_intervals(outcomes),
        **_after_promotion(outcomes),
        **_costs(outcomes, reference),
        "power_by_spread": _power_by_spread(good),
        "reasons": dict(Counter(code for o in outcomes for code in set(o.codes)).most_common()),
        "calls": _mean([o.calls for o in outcomes]),
    }


def _intervals(outcomes: list[Outcome]) -> dict[str, Figure]:
    """How the decision's 95 % interval of the speed-up covered the truth, over promotions."""
    claims = [o for o in outcomes if o.interval is not None and o.true_speedup is not None]
    widths = [math.log(o.interval[1] / o.interval[0]) for o in claims if o.interval]
    return {
        "true_below_interval": share(claims, lambda o: _missed_by(o) < 0),
        "true_above_interval": share(claims, lambda o: _missed_by(o) > 0),
        "interval_width": _mean(widths) if widths else {"mean": None, "se": None, "n": 0},
    }


def _missed_by(outcome: Outcome) -> int:
    """-1 where the true ratio lies below the interval, 1 above it, 0 inside."""
    low, high = outcome.interval or (0.0, math.inf)
    truth = outcome.true_speedup or low
    return (truth > high) - (truth < low)


def _after_promotion(outcomes: list[Outcome]) -> dict[str, Any]:
    clean = [o for o in outcomes if o.promoted_clean]
    visible = [o for o in outcomes if o.regresses >= 2 and o.spread_to_margin <= 1]
    delays = sorted(o.delay for o in visible if o.delay is not None)
    return {
        "wrong_reverts": share(clean, _reverted),
        "right_reverts": share(visible, _reverted),
        "right_reverts_by": _endings(str(o.probation) for o in visible),
        "right_reverts_in_time": share([o for o in visible if (o.room or 0) >= ROOM], _reverted),
        "bad_reverted": share([o for o in outcomes if o.promoted_bad], _reverted),
        "delay": {
            "median": statistics.median(delays) if delays else None,
            "n": len(delays),
            "counts": {str(k): v for k, v in sorted(Counter(delays).items())},
        },
    }


def _costs(outcomes: list[Outcome], reference: Sequence[float]) -> dict[str, Figure]:
    oracle = [o.oracle_usd for o in outcomes]
    jobs = [o.baseline_gpu_hours for o in outcomes]
    return {
        "gpu_hours": percent_of([o.gpu_hours for o in outcomes], reference),
        "gpu_hours_redone": percent_of([o.redone_gpu_hours for o in outcomes], reference),
        "probe_of_one_job": percent_of([o.probe_gpu_hours for o in outcomes], jobs),
        "jobs": _mean([o.gpu_hours / o.baseline_gpu_hours for o in outcomes]),
        "bad_runs": _mean([o.bad_runs for o in outcomes]),
        "weeks": _mean([o.weeks for o in outcomes]),
        "net_saving": percent_of([o.saved_usd for o in outcomes], oracle),
        "net_saving_redone": percent_of([o.saved_redone_usd for o in outcomes], oracle),
    }


def _power_by_spread(good: list[Outcome]) -> list[dict[str, Any]]:
    rows = []
    for low, high in itertools.pairwise(SPREADS):
        inside = [o for o in good if low <= o.spread_to_margin < high]
        rows.append({"from": low, "to": high, **share(inside, lambda o: not _missed(o))})
    return rows


def _endings(verdicts: Iterable[str]) -> dict[str, int]:
    return dict(Counter(verdicts).most_common())


def _missed(outcome: Outcome) -> bool:
    return not outcome.promoted or outcome.promoted_bad


def _reverted(outcome: Outcome) -> bool:
    return outcome.probation == "revert"


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


def _mean(values: Sequence[float]) -> Figure:
    se = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "se": se, "n": len(values)}
