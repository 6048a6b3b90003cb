"""What the probation watches: one figure per production run against the baseline's.

The reference is every baseline run known so far: history, the trial's, production's. The
spread is pooled over all of them and the candidate's own runs in the trial.

A fall is watched for by a one-sided cumulative sum (Page 1954):

    S_t = max(0, S_{t-1} + reference - shift/2 - x_t),   alarm when S_t > h s

The threshold h keeps the chance of a false alarm within ``runs`` runs at about ``error``. For
normal x the mean number of runs to a false alarm is (Siegmund 1985, with his correction of
1.166 for the overshoot)

    ARL_0 = (exp(2 k b) - 2 k b - 1) / (2 k^2),   k = shift / (2 s),   b = h + 1.166

and the time to a false alarm is close to exponential, so ARL_0 = runs / -ln(1 - error).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from compilegate.domain.arithmetic import mean, squares
from compilegate.domain.judging.drift import KAPPA, allowed_drift, history_weight
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, metrics
from compilegate.domain.judging.run_work import ComparableWalls
from compilegate.domain.judging.speed import log_price_ratio
from compilegate.domain.judging.target import TimesToTarget, timed_to_target
from compilegate.domain.optional import without_none
from compilegate.domain.workload.quality import Metric

# The check of an alarm: pairs of runs, one of each arm in turns, until they say enough.
#
# With b_j, c_j the figures of pair j (higher is better), d_j = b_j - c_j how far the candidate
# fell, delta the fall to detect and tau the tolerated one (for a metric m and m/2), Wald's
# sequential probability ratio (1945, Annals of Mathematical Statistics 16:117) of a fall of tau +
# delta/2 against one of tau - delta/2 is, after n pairs of spread s,
#
#     Lambda = sum_j delta (d_j - tau) / (2 s^2) = delta (mean(b) - mean(c) - tau) / (s^2 (2/n))
#
# Pairs of adjacent nights cancel what a night or a drift does to both arms, so nothing older is
# compared with. Where the arms have unequal numbers of runs, 1/n_b + 1/n_c stands for 2/n.
#
#     revert at Lambda >= ln((1 - 0.05) / 0.10)      clear at Lambda <= ln(0.05 / (1 - 0.10))
#
# after FIRST to LAST pairs, then by D > tau. The bounds are for 10 % of faultless candidates with
# an alarm reverted and 5 % of those that lose delta cleared, without an end at LAST.

FIRST, LAST = 3, 12
# Chance, given an alarm, that a faultless candidate is reverted, and that a loss of one shift is
# cleared.
WRONG_REVERT, WRONG_CLEAR = 0.10, 0.05
REVERT_AT = math.log((1 - WRONG_CLEAR) / WRONG_REVERT)
CLEAR_AT = math.log(WRONG_CLEAR / (1 - WRONG_REVERT))
# Share of a shift below which two figures are the same.
TIE = 1e-9


class Outcome(StrEnum):
    """What the pairs so far say."""

    REVERT = "revert"
    CLEAR = "clear"
    OPEN = "open"


@dataclass(frozen=True)
class Fall:
    """How far the candidate stands below the baseline, from so many runs of each.

    ``theirs`` is what the baseline's runs count as, which earlier ones do in part.
    """

    size: float
    ours: float
    theirs: float


@dataclass(frozen=True)
class Look:
    """What the pairs so far say of one figure; ``ratio`` is Lambda, ``spread`` of single runs."""

    fall: Fall
    spread: float
    ratio: float
    outcome: Outcome


def look(fall: Fall, *, shift: float, tolerated: float, spread: float, last: bool) -> Look:
    """What follows from a fall; at the ``last`` pair something does."""
    # Exactly what is tolerated is tolerated, however the last digit came out.
    excess = fall.size - tolerated - TIE * shift
    ratio = shift * (fall.size - tolerated) / (spread**2 * (1 / fall.ours + 1 / fall.theirs))
    if excess > 0 and (last or ratio >= REVERT_AT):
        outcome = Outcome.REVERT
    else:
        outcome = Outcome.CLEAR if last or ratio <= CLEAR_AT else Outcome.OPEN
    return Look(fall, spread, ratio, outcome)


def spread_of(known: float, ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The spread that the check goes by: the known one, or its own runs' if that is larger.

    A spread taken too small would let the first pairs decide; one too large only takes more pairs.
    """
    df = max(len(ours) - 1, 0) + max(len(theirs) - 1, 0)
    own = math.sqrt((squares(ours) + squares(theirs)) / df) if df else 0.0
    return max(known, own)


def mean_fall(
    ours: Sequence[float], theirs: Sequence[float], *, earlier: tuple[float, float] | None
) -> Fall | None:
    """D of the check's runs; ``earlier`` (mean, weight) where the baseline has none among them."""
    if not ours:
        return None
    if theirs:
        return Fall(mean(theirs) - mean(ours), len(ours), len(theirs))
    return None if earlier is None else Fall(earlier[0] - mean(ours), len(ours), earlier[1])


# Chance of a false alarm over a whole probation, before its runs are checked.
FALSE_ALARM = 0.02
# A fall of one shift is seen reliably only while the spread is at most this many shifts.
RELIABLE_SPREAD = 1.2
# Spread of ln(wall clock) between nodes where runs are too few to measure it.
WALL_SD = 0.04
LEAST_WALL_SD = 0.01
LEAST_DF = 4
# The check of a speed-up tells falls apart that differ by this in ln(wall clock), 1.10x, or by the
# gain above the bar where that is more: of a gain just above it pairs of runs say nothing else.
LEAST_CHECKED_SHIFT = 0.1

# Share of the limit that has to be checked before a probation ends well.
SUSPICIOUS = 0.65

# Baseline runs since the promotion that may outweigh earlier ones. With a single one enough,
# faultless candidates are reverted half as often again: 0.5 against 0.35 % and 1.4 against 1.0 %
# where the metric varies by 0.6 and 1 margins (benchmarks/decision/probation.py).
LEAST_CONTRADICTION = 2
# Siegmund's correction for the overshoot.
OVERSHOOT = 1.166

Figure = Callable[[FullRun], float | None]


@dataclass
class Monitor:
    """One cumulative sum; ``shift`` is the fall to detect, ``tolerated`` the acceptable fall.

    ``checked_shift`` is how far apart the two falls are that the check of an alarm decides between.

    All figures are turned so that higher is better; ``old`` are the baseline's before the
    probation, ``new`` those since. ``level`` is where the candidate stood at promotion,
    relative to the reference: 0 for quality, ln(speed-up) for speed. ``error`` is the chance of a
    false alarm over the probation.
    """

    code: str
    noun: str
    figure: Figure
    old: list[float]
    spread: float
    shift: float
    checked_shift: float
    tolerated: float
    level: float
    runs: int
    error: float = FALSE_ALARM
    new: list[float] = field(default_factory=list)
    total: float = 0.0

    @property
    def reference_runs(self) -> int:
        """Baseline runs known so far."""
        return len(self.old) + len(self.new)

    @property
    def reference(self) -> float:
        """Where the candidate's runs should stand; needs a baseline run.

        Baseline runs of before the probation count less once those since contradict them; a single
        one since, which may be far off by chance, contradicts nothing.
        """
        drift = allowed_drift(self.old, self.new, self.spread**2)
        if drift <= KAPPA or len(self.new) < LEAST_CONTRADICTION:
            return mean([*self.old, *self.new]) + self.level
        weight = history_weight(len(self.old), drift)
        total = weight * mean(self.old) + math.fsum(self.new)
        return total / (weight + len(self.new)) + self.level

    @cached_property
    def limit(self) -> float:
        """Where the sum alarms, in the figure's unit."""
        h = cusum_threshold(self.shift, self.spread, runs=self.runs, error=self.error)
        return h * self.spread

    def learn(self, run: FullRun) -> None:
        """Add a baseline run to the reference."""
        self.new += without_none([self.figure(run)])

    def sees(self, run: FullRun) -> bool:
        """Whether a run has a figure, and something that it can be compared with."""
        return self.figure(run) is not None and self.reference_runs > 0 and self.spread > 0

    def watch(self, run: FullRun) -> bool:
        """Add a candidate's run to the sum; whether it alarms."""
        value = self.figure(run)
        if value is None or not self.sees(run):
            return False
        self.total = cusum_step(self.total, value, reference=self.reference, shift=self.shift)
        return self.total > self.limit

    @property
    def suspicious(self) -> bool:
        """Whether the sum is high at the end of the probation, as it is when a fall begins late."""
        return self.total > SUSPICIOUS * self.limit > 0

    def check(
        self, ours: Sequence[FullRun], theirs: Sequence[FullRun], *, last: bool
    ) -> Look | None:
        """What the runs that check an alarm say so far; None where they have no figure.

        Where the baseline keeps failing, all its earlier runs count as some of today.
        """
        mine, today = without_none(map(self.figure, ours)), without_none(map(self.figure, theirs))
        known = [*self.old, *self.new]
        earlier = (mean(known), history_weight(len(known))) if known else None
        fall = mean_fall(mine, today, earlier=earlier)
        if fall is None:
            return None
        spread = spread_of(self.spread, mine, today)
        return look(
            fall, shift=self.checked_shift, tolerated=self.tolerated, spread=spread, last=last
        )


def quality_monitor(evidence: Evidence, promoted: Arm) -> Monitor:
    """Watches the metric for a loss of one margin; half of one is tolerated when confirmed."""
    margin = evidence.quality.margin
    history, theirs, ours = (
        evidence.oriented(values)
        for values in (
            evidence.quality.history, metrics(evidence.baseline.quality), metrics(promoted.quality),
        )
    )  # fmt: skip
    return Monitor(
        code="quality_regressed",
        noun=evidence.quality.metric,
        figure=lambda run: None if run.metric is None else evidence.oriented([run.metric])[0],
        old=history + theirs,
        spread=_spread(history, theirs, ours) or margin,
        shift=margin,
        checked_shift=margin,
        tolerated=margin / 2,
        level=0.0,
        runs=evidence.policy.probation_runs,
        error=FALSE_ALARM / (1 + len(evidence.quality.guardrails)),
    )


def guardrail_monitor(evidence: Evidence, guardrail: Metric) -> Monitor:
    """Watches a guardrail as the first metric is watched."""
    seen = evidence.by(guardrail)
    monitor = quality_monitor(seen, seen.promoted_arm)
    return replace(
        monitor,
        code="guardrail_regressed",
        figure=lambda run: monitor.figure(run.by(guardrail.metric)),
    )


def speed_monitor(evidence: Evidence, promoted: Arm, speedup: float | None) -> Monitor:
    """Watches ln(wall clock), turned, for all gain above ``min_proven_speedup`` going away.

    Or ln(time to the target), where that was compared.
    """
    baseline, policy = evidence.baseline, evidence.policy
    to_target = timed_to_target(promoted, evidence)
    kind = TimesToTarget if to_target else ComparableWalls
    theirs, ours = kind(baseline, evidence), kind(promoted, evidence)
    history, base, mine = (
        [-math.log(seconds) for seconds in walls]
        for walls in (
            () if to_target else evidence.history_wall_seconds,
            theirs.of(baseline.quality), ours.of(promoted.quality),
        )
    )  # fmt: skip
    earlier = history + base
    gain = math.log(speedup or policy.min_mean_speedup)
    if mine and earlier:
        gain = mean(mine) - mean(earlier)
    least = math.log(policy.min_proven_speedup) + log_price_ratio(promoted, evidence)
    of_baseline = {run.order for run in baseline.probation}

    def figure(run: FullRun) -> float | None:
        seconds = (theirs if run.order in of_baseline else ours).seconds(run)
        return -math.log(seconds) if seconds else None

    return Monitor(
        code="speedup_gone",
        noun="ln(time to the target)" if to_target else "ln(wall clock)",
        figure=figure,
        old=earlier,
        spread=max(_spread(history, base, mine) or WALL_SD, LEAST_WALL_SD),
        shift=max(gain - least, 2 * LEAST_WALL_SD),
        checked_shift=max(gain - least, LEAST_CHECKED_SHIFT),
        tolerated=-least,
        level=gain,
        runs=policy.probation_runs,
    )


def _spread(*groups: Sequence[float]) -> float:
    """Pooled standard deviation, 0 below a few degrees of freedom."""
    df = sum(max(len(group) - 1, 0) for group in groups)
    if df < LEAST_DF:
        return 0.0
    return math.sqrt(math.fsum(squares(group) for group in groups) / df)


def average_run_length(h: float, k: float) -> float:
    """ARL_0 of threshold ``h`` at allowance ``k``, both in standard deviations."""
    b = h + OVERSHOOT
    return (math.exp(2 * k * b) - 2 * k * b - 1) / (2 * k * k)


def cusum_threshold(shift: float, spread: float, *, runs: int, error: float) -> float:
    """h in standard deviations, by bisection; 0 where even h = 0 alarms rarely enough."""
    k = shift / (2 * spread)
    needed = runs / -math.log1p(-error)
    low, high = 0.0, 1.0
    # Beyond 700 the exponential overflows; no alarm that late matters.
    while 2 * k * (high + OVERSHOOT) < 700 and average_run_length(high, k) < needed:
        low, high = high, high * 2
    if 2 * k * (high + OVERSHOOT) >= 700 or average_run_length(0.0, k) >= needed:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if average_run_length(middle, k) < needed else (low, middle)
    return high


def cusum_step(total: float, value: float, *, reference: float, shift: float) -> float:
    """S_t from S_{t-1} and one run's ``value``; higher values are better."""
    return max(0.0, total + reference - shift / 2 - value)
