"""What a promotion has saved so far, run by run, against what its trial estimated.

A run is compared with the rolling baseline: the latest baseline runs that production had made
when it started, so that a job that grew for both arms is not booked as a loss of the candidate's.
A run that trained on fewer samples or tokens than those, or steps where they recorded no samples,
did not save what they took; nor did one where it or they say nothing of their steps.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.failures import COMPLETED
from compilegate.domain.outside import is_figure
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import BASELINE

# What a production run recorded of itself, by the ledger's entry of any release.


def metric_of(run: ProductionRun) -> float | None:
    """What it reached of the workload's metric, None where it recorded no finite number."""
    return _figure(run.result.get("metric"))


def wall_seconds_of(run: ProductionRun) -> float | None:
    """Seconds of wall clock of the whole job; one that took no time was not measured."""
    seconds = _figure(run.result.get("wall_seconds"))
    return seconds if seconds is not None and seconds > 0 else None


def work_of(run: ProductionRun) -> tuple[float, float, float] | None:
    """The steps, samples and tokens that it did, 0 where it recorded none.

    None before they were added up. Steps of its lines, or fewer that it says itself.
    """
    work = run.result.get("work")
    if not isinstance(work, Mapping):
        return None
    steps, said = _figure(work.get("steps")) or 0.0, _figure(run.result.get("steps"))
    steps = min(steps or said or 0.0, said or steps)
    samples, tokens = (
        steps * (_figure(work.get(key)) or 0.0) for key in ("samples_per_step", "tokens_per_step")
    )
    return steps, samples, tokens


def applied(run: ProductionRun) -> bool:
    """Whether its own record says that the arm's change was applied."""
    return run.result.get("applied") is True


def failed(run: ProductionRun) -> bool:
    """Whether it did not train to its end; unknown of one that left no evidence."""
    return run.status != COMPLETED or run.result.get("finished") is False


def problem_of(run: ProductionRun) -> str:
    """What went wrong with it, without a dot at the end; empty where nothing did."""
    return str(run.reason or run.result.get("reason") or "").rstrip(".")


def _figure(value: Any) -> float | None:
    # Not formats.number: the functions that watch production load nothing that makes text.
    return float(value) if is_figure(value) and not isinstance(value, bool) else None


# Enough to smooth what differs between nodes, few enough to follow a job that grows.
ROLLING = 5
# Production's data grow and shrink; a run of less than this share has done less. Tokens that are
# no padding vary with the order of the data.
LEAST_WORK, LEAST_TOKENS = 0.95, 0.9


@dataclass(frozen=True)
class Savings:
    """Sums over the candidate's runs; what is not known is counted, never guessed.

    ``compared_runs`` finished and had a baseline to be compared with, ``failed_runs`` crashed or
    diverged and are booked with what they cost, ``unknown_runs`` are all others. ``saved_hours``
    are of whole jobs, not of devices. ``saved_usd`` covers ``priced_runs``, None without any.
    ``expected_usd`` is what the trial's estimate comes to over the compared runs, None without one.
    """

    runs: int
    compared_runs: int
    failed_runs: int
    unknown_runs: int
    priced_runs: int
    saved_hours: float
    saved_usd: float | None
    expected_usd: float | None

    @property
    def usd_per_run(self) -> float | None:
        """Mean saving of a priced run, None without any."""
        return None if self.saved_usd is None else self.saved_usd / self.priced_runs

    @property
    def share_of_estimate(self) -> float | None:
        """What was saved over what was expected; None where either is unknown or nothing was."""
        if self.saved_usd is None or not self.expected_usd:
            return None
        return self.saved_usd / self.expected_usd


@dataclass(frozen=True)
class RunSaving:
    """What one run of the candidate saved; seconds of wall clock and USD, None where unknown."""

    run: ProductionRun
    seconds: float | None
    usd: float | None

    @property
    def compared(self) -> bool:
        """Whether it finished and had a baseline to be compared with."""
        return self.run.finished and self.seconds is not None


def savings_so_far(
    runs: Sequence[ProductionRun],
    *,
    usd_per_run: float | None = None,
    since: float = -math.inf,
) -> Savings:
    """What the candidate's runs of any time have saved.

    ``runs`` are in the order of time (history.py); those that ended before ``since``
    (epoch seconds) serve as baseline only. ``usd_per_run`` is the trial's estimate
    (``saving.usd_per_run`` of its decision).
    """
    return sum_of(list(run_savings(runs, since=since)), usd_per_run)


def sum_of(by_run: Sequence[RunSaving], usd_per_run: float | None) -> Savings:
    """The sums over some of the candidate's runs; ``usd_per_run`` as above."""
    compared = sum(one.compared for one in by_run)
    failed = sum(not one.run.finished for one in by_run)
    usd = [one.usd for one in by_run if one.usd is not None]
    return Savings(
        runs=len(by_run),
        compared_runs=compared,
        failed_runs=failed,
        unknown_runs=len(by_run) - compared - failed,
        priced_runs=len(usd),
        saved_hours=math.fsum(one.seconds / 3600 for one in by_run if one.seconds is not None),
        saved_usd=math.fsum(usd) if usd else None,
        expected_usd=None if usd_per_run is None else usd_per_run * compared,
    )


def total(parts: Sequence[Savings]) -> Savings:
    """The sum of several promotions' savings; the estimate only where each has one."""
    saved = [part.saved_usd for part in parts if part.saved_usd is not None]
    expected = [part.expected_usd for part in parts if part.compared_runs]
    estimates = [usd for usd in expected if usd is not None]
    complete = bool(estimates) and len(estimates) == len(expected)
    return Savings(
        runs=sum(part.runs for part in parts),
        compared_runs=sum(part.compared_runs for part in parts),
        failed_runs=sum(part.failed_runs for part in parts),
        unknown_runs=sum(part.unknown_runs for part in parts),
        priced_runs=sum(part.priced_runs for part in parts),
        saved_hours=math.fsum(part.saved_hours for part in parts),
        saved_usd=math.fsum(saved) if saved else None,
        expected_usd=math.fsum(estimates) if complete else None,
    )


def run_savings(runs: Sequence[ProductionRun], *, since: float = -math.inf) -> Iterator[RunSaving]:
    """What each run of the candidate saved, in the order of time; arguments as above."""
    walls: deque[float] = deque(maxlen=ROLLING)
    prices: deque[float] = deque(maxlen=ROLLING)
    work: deque[tuple[float, float, float]] = deque(maxlen=ROLLING)
    for run in runs:
        wall, own, price = wall_seconds_of(run), work_of(run), run.usd
        if run.arm == BASELINE:
            if run.finished and run.counts:
                walls.extend([] if wall is None else [wall])
                prices.extend([] if price is None else [price])
                work.extend([] if own is None else [own])
        elif run.ended_at < since:
            continue
        elif not run.finished:  # saves nothing and costs
            spent = run.billable_seconds
            yield RunSaving(
                run, None if spent is None else -spent, None if price is None else -price
            )
        elif own is not None and work and _did_less(own, work):
            yield RunSaving(run, None, None)
        else:
            yield RunSaving(
                run,
                None if wall is None or not walls else mean(walls) - wall,
                None if price is None or not prices else mean(prices) - price,
            )


def _did_less(
    own: tuple[float, float, float], baseline: Iterable[tuple[float, float, float]]
) -> bool:
    """By samples and tokens, which do not depend on the batch; by steps without samples."""
    steps, samples, tokens = (
        mean([figure for figure in of_runs if figure] or [0.0])
        for of_runs in zip(*baseline, strict=True)
    )
    own_steps, own_samples, own_tokens = own
    return (
        not (own_steps and steps)
        or (own_samples < LEAST_WORK * samples if samples else own_steps < LEAST_WORK * steps)
        or own_tokens < LEAST_TOKENS * tokens
    )
