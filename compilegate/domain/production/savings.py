"""What runs of a candidate have saved, in whole micro-dollars with a standard error.

A run saved its price times (ratio - 1), where the ratio is that of baseline to candidate among the
runs near its month (ratio.py), so that a job that grew for both arms is no loss of the candidate's.
It is the same for all runs of a month: sums over days and promotions are those of months.

A run that trained on fewer samples or tokens than those before it, or steps where they recorded no
samples, did not save what they took; nor did one where it or they say nothing of their steps.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from compilegate.domain import utc
from compilegate.domain.arithmetic import mean
from compilegate.domain.economics import known_usd, micro_usd
from compilegate.domain.failures import COMPLETED
from compilegate.domain.optional import largest, map_optional, without_none
from compilegate.domain.outside import is_figure
from compilegate.domain.production.ratio import NORMAL_QUANTILE, Point, Ratio, ratio_of
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import BASELINE

# Of what came of a bundle of compiled code (training/compilegate_runtime/compile_bundle.py).
RESTORED = "restored"

# What a production run recorded of itself, by the ledger's entry of any release.


def metric_of(run: ProductionRun, guardrail: str | None = None) -> float | None:
    """What it reached of the workload's metric or a guardrail; None without a finite number."""
    if guardrail is None:
        return _figure(run.result.get("metric"))
    values = run.result.get("metrics")
    return _figure(values.get(guardrail)) if isinstance(values, Mapping) else None


def wall_seconds_of(run: ProductionRun) -> float | None:
    """Seconds of wall clock of the whole job; one that took no time was not measured."""
    return max(_figure(run.result.get("wall_seconds")) or 0.0, 0.0) or None


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


def failed(run: ProductionRun) -> bool:
    """Whether it did not train to its end; unknown of one that left no evidence."""
    return run.status != COMPLETED or run.result.get("finished") is False


def problem_of(run: ProductionRun) -> str:
    """What went wrong with it, without a dot at the end; empty where nothing did."""
    return str(run.reason or run.result.get("reason") or "").rstrip(".")


def compiled_anew(run: ProductionRun) -> str | None:
    """Why it did not restore the bundle of compiled code that its flag names; None where it did.

    None as well without a bundle. The time counts as the candidate's: where no run restores
    it any more, production has lost what it was promised.
    """
    state = run.details.get("compile_bundle", {}).get("state")
    return None if state == RESTORED else state


def _figure(value: Any) -> float | None:
    # Not formats.number: the functions that watch production load nothing that makes text.
    return float(value) if is_figure(value) and not isinstance(value, bool) else None


# How long before its month a run may be to tell the ratio, and how long after the month's end: from
# then on nothing changes what was saved in it.
NEAR_SECONDS = 8 * 7 * 86_400
OPEN_SECONDS = 14 * 86_400
# Enough to smooth how runs' work differs, few enough to follow a job that grows.
ROLLING = 5
# Production's data grow and shrink; a run of less than this share has done less. Tokens that are
# no padding vary with the order of the data.
LEAST_WORK, LEAST_TOKENS = 0.95, 0.9


@dataclass(frozen=True)
class Savings:
    """Sums over the candidate's runs; what is not known is counted, never guessed.

    ``compared_runs`` finished and had a baseline to be compared with, ``failed_runs`` crashed or
    diverged and are booked with what they cost, ``unknown_runs`` are all others. ``micro_usd`` (0
    without any) covers ``priced_runs``; its interval is that of the normal distribution with
    ``se_micro_usd``. Of several workloads the variances add up; months of one share baseline runs,
    so that their standard errors are added. ``baseline_at`` is when the latest baseline run that
    was compared with ended, epoch seconds. ``expected_usd`` is what the trial's estimate comes to
    over the compared runs, None without one.
    """

    runs: int = 0
    compared_runs: int = 0
    failed_runs: int = 0
    unknown_runs: int = 0
    priced_runs: int = 0
    micro_usd: int = 0
    se_micro_usd: int = 0
    baseline_at: float | None = None
    expected_usd: float | None = None

    @property
    def saved_usd(self) -> float | None:
        """In USD; None without any run whose saving is known."""
        return self.micro_usd / 1e6 if self.priced_runs else None

    @property
    def interval_usd(self) -> tuple[float, float]:
        """The 90 % interval of the sum, in USD."""
        half = NORMAL_QUANTILE * self.se_micro_usd
        return (self.micro_usd - half) / 1e6, (self.micro_usd + half) / 1e6

    def to_dict(self) -> dict[str, Any]:
        """For programs: with the sum in USD, too."""
        return {**asdict(self), "saved_usd": self.saved_usd}

    @property
    def share_of_estimate(self) -> float | None:
        """What was saved over what was expected; None where either is unknown or nothing was."""
        expected = self.expected_usd if self.priced_runs else None
        return self.micro_usd / 1e6 / expected if expected else None


@dataclass(frozen=True)
class RunSaving:
    """What one run of the candidate saved, None where unknown, with its standard error."""

    run: ProductionRun
    micro_usd: int | None
    se_micro_usd: int = 0
    baseline_at: float | None = None

    @property
    def usd(self) -> float | None:
        """In USD."""
        return map_optional(self.micro_usd, lambda micro: micro / 1e6)

    @property
    def compared(self) -> bool:
        """Whether it finished and had a baseline to be compared with."""
        return self.run.finished and self.micro_usd is not None


def saving_of(
    runs: Sequence[ProductionRun],
    since: float = -math.inf,
    until: float = math.inf,
    *,
    usd_per_run: float | None = None,
) -> Savings:
    """What the candidate's runs that were booked from ``since`` up to ``until`` have saved.

    ``runs`` are in the order of time (history.py), from ``NEAR_SECONDS`` before the month of
    ``since`` on, times in epoch seconds. ``usd_per_run`` is the trial's estimate
    (``saving.usd_per_run`` of its decision).
    """
    return sum_of(run_savings(runs, since, until), usd_per_run)


def sum_of(by_run: Sequence[RunSaving], usd_per_run: float | None = None) -> Savings:
    """The sums over some of the candidate's runs; ``usd_per_run`` as above."""
    compared = sum(one.compared for one in by_run)
    failed = sum(not one.run.finished for one in by_run)
    priced = without_none(one.micro_usd for one in by_run)
    return Savings(
        runs=len(by_run),
        compared_runs=compared,
        failed_runs=failed,
        unknown_runs=len(by_run) - compared - failed,
        priced_runs=len(priced),
        micro_usd=sum(priced),
        se_micro_usd=sum(one.se_micro_usd for one in by_run),
        baseline_at=largest(one.baseline_at for one in by_run),
        expected_usd=map_optional(usd_per_run, lambda usd: usd * compared),
    )


def total(parts: Sequence[Savings]) -> Savings:
    """The sum of several promotions' savings; the estimate only where each has one."""
    expected = [part.expected_usd for part in parts if part.compared_runs]
    estimates = without_none(expected)
    complete = bool(estimates) and len(estimates) == len(expected)
    return Savings(
        runs=sum(part.runs for part in parts),
        compared_runs=sum(part.compared_runs for part in parts),
        failed_runs=sum(part.failed_runs for part in parts),
        unknown_runs=sum(part.unknown_runs for part in parts),
        priced_runs=sum(part.priced_runs for part in parts),
        micro_usd=sum(part.micro_usd for part in parts),
        se_micro_usd=sum(part.se_micro_usd for part in parts),
        baseline_at=largest(part.baseline_at for part in parts),
        expected_usd=math.fsum(estimates) if complete else None,
    )


def booked_at(run: ProductionRun) -> float:
    """When its entry was written, so that no run comes into a month that has long ended.

    Of entries that do not say it, when the run ended.
    """
    return run.at or run.ended_at


def run_savings(
    runs: Sequence[ProductionRun], since: float = -math.inf, until: float = math.inf
) -> list[RunSaving]:
    """What each run of a candidate saved, in the order of time; arguments as of ``saving_of``."""
    mine = [run for run in runs if run.arm != BASELINE and since <= booked_at(run) < until]
    months = {utc.month_of(booked_at(run)) for run in mine}
    compared = {month: _Month(runs, month) for month in months}
    return [compared[utc.month_of(booked_at(run))].saving(run) for run in mine]


def forgone_savings(
    runs: Sequence[ProductionRun],
    held: Sequence[tuple[ProductionRun, str]],
    month: tuple[float, float],
) -> list[RunSaving]:
    """What baseline runs of a month would have saved with the candidate named beside each."""
    compared = _Month(runs, month) if held else None
    return [compared.forgone(run, candidate) for run, candidate in held if compared]


class _Month:
    """The runs near a month (``since``, ``until``), and the ratio of each candidate among them."""

    def __init__(self, runs: Sequence[ProductionRun], month: tuple[float, float]) -> None:
        since, until = month
        # None is booked before it has started; a history of years has few runs near a month.
        first, last = (
            bisect_left(runs, at, key=attrgetter("started_at"))
            for at in (since - NEAR_SECONDS, until + OPEN_SECONDS)
        )
        near = [
            (run, work_of(run)) for run in runs[first:last] if booked_at(run) < until + OPEN_SECONDS
        ]
        measured = [
            place
            for place, (run, work) in enumerate(near)
            if run.arm == BASELINE and run.finished and run.counts and work is not None
        ]
        # Also of those after it: where the data shrank, the next baseline run did less as well.
        until_last = near[: measured[-1] + 1] if measured else []
        self.whole = {*_with_whole_work(near), *_with_whole_work(reversed(until_last))}
        self.by_arm: dict[str, list[ProductionRun]] = defaultdict(list)
        for run, _ in near:
            if run.key in self.whole and run.counts and known_usd(run.usd):
                self.by_arm[run.arm].append(run)
        self.ratios: dict[str, Ratio | None] = {}

    def saving(self, run: ProductionRun) -> RunSaving:
        """What a candidate's run saved; one that failed saved nothing and cost its price."""
        usd = known_usd(run.usd)
        if usd is None:
            return RunSaving(run, None)
        if not run.finished:
            return RunSaving(run, -micro_usd(usd))
        ratio = self._ratio(run.arm)
        if ratio is None or run.key not in self.whole:
            return RunSaving(run, None)
        on_baseline = usd * math.exp(ratio.log)
        return RunSaving(
            run,
            micro_usd(on_baseline - usd),
            micro_usd(on_baseline * ratio.se),
            self.by_arm[BASELINE][-1].ended_at,
        )

    def forgone(self, run: ProductionRun, candidate: str) -> RunSaving:
        """What a baseline's run would have saved; unknown of one that failed."""
        usd, ratio = known_usd(run.usd), self._ratio(candidate)
        if usd is None or not run.finished or ratio is None:
            return RunSaving(run, None)
        on_candidate = usd * math.exp(-ratio.log)
        return RunSaving(run, micro_usd(usd - on_candidate), micro_usd(on_candidate * ratio.se))

    def _ratio(self, arm: str) -> Ratio | None:
        if arm not in self.ratios:
            both = sorted(self.by_arm[BASELINE] + self.by_arm[arm], key=lambda one: one.started_at)
            self.ratios[arm] = ratio_of(
                [
                    Point(run.started_at, math.log(run.usd), run.arm == BASELINE)
                    for run in both
                    if run.usd
                ]
            )
        return self.ratios[arm]


def _with_whole_work(
    runs: Iterable[tuple[ProductionRun, tuple[float, float, float] | None]],
) -> Iterator[str]:
    """Keys of the finished runs, of candidates' those that did the work of the runs before.

    Of the latest baseline run, and of those since that did as much: a job that shrinks does less
    in each run, and after months of it much less than the baseline of long ago.
    """
    before: deque[tuple[float, float, float]] = deque(maxlen=ROLLING)
    for run, own in runs:
        if not run.finished:
            continue
        if own is not None:
            if run.arm != BASELINE and before and _did_less(own, before):
                continue
            if run.counts:
                if run.arm == BASELINE:
                    before.clear()
                before.append(own)
        yield run.key


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
