"""The statistics of the judge: Student's t, non-inferiority, interim looks, power and drift."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from compilegate.domain.arithmetic import deviation, mean, squares
from compilegate.domain.decision import Interval
from compilegate.domain.workload.model import Policy

# Student's t distribution in standard-library Python.
#
# The tail is the regularised incomplete beta function, P(T > t) = I_x(df/2, 1/2) / 2 with
# x = df / (df + t^2) (Abramowitz and Stegun 1964, eq. 26.7.1), evaluated by the continued
# fraction 26.5.8 with the modified Lentz method (Thompson and Barnett 1986). scipy is the
# oracle in the tests; importing it would cost a Lambda most of a second.

_TINY = 1e-300
_PRECISION = 1e-16
_MAX_TERMS = 1000


def upper_tail(t: float, df: float) -> float:
    """P(T > t) for ``df`` > 0 degrees of freedom."""
    if df <= 0 or math.isnan(t):
        raise ValueError(f"Student's t needs df > 0 and a number, got df={df}, t={t}")
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    half = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    return half if t >= 0 else 1.0 - half


@lru_cache(maxsize=4096)
def quantile(p: float, df: float) -> float:
    """The value t with P(T <= t) = p, by bisection; 0 < p < 1."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs 0 < p < 1, got {p}")
    if p < 0.5:
        return -quantile(1 - p, df)
    low, high = 0.0, 1.0
    while upper_tail(high, df) > 1 - p:
        low, high = high, high * 2
    while high - low > 1e-14 * max(1.0, high):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if upper_tail(middle, df) > 1 - p else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float, complement: float) -> float:
    """I_x(a, b); ``complement`` is 1 - x, passed so that it keeps its digits near x = 1."""
    if x <= 0 or complement <= 0:
        return 0.0 if x <= 0 else 1.0
    log_front = (
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log(complement)
    )
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _continued_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _continued_fraction(b, a, complement) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


# Of every two-sided interval that is shown.
CONFIDENCE = 0.95


def half_width(values: Sequence[float], level: float) -> float:
    """t s / sqrt(n) of two or more values: one side of their mean's interval, error ``level``."""
    n = len(values)
    return quantile(1 - level, n - 1) * deviation(values) / math.sqrt(n)


def interval_of(values: Sequence[float]) -> Interval | None:
    """Of their mean, two-sided at CONFIDENCE; None below two values."""
    if len(values) < 2:
        return None
    centre, half = mean(values), half_width(values, (1 - CONFIDENCE) / 2)
    return centre - half, centre + half


# The comparison behind the quality gate: candidate against baseline, with history.
#
# Estimand: the mean final metric of runs of different seeds, candidate minus baseline, on what
# production trains on while the candidate's own runs are made. x are the candidate's final
# metrics (n), B the baseline's of the same weeks (n_b), H its history (n_0), all turned so that
# higher is better; quality.py says which run is which. History tells how much the metric
# varies from run to run, never where it stands: data moves, and a history that is off by half a
# standard deviation would double the error of a test that trusted its mean.
#
#     D = mean(x) - mean(B),   v = 1/n + 1/n_b
#     s^2 = max{(SS_H + SS_B + SS_x) / df, SS_x / (n - 1)}
#
# The spread is never taken smaller than the candidate's own: a compiler that makes training
# less stable must not hide behind a calm baseline. Where the candidate's own is the larger, it
# rests on the candidate's few runs, and df is that of a difference of two means with different
# spreads (Satterthwaite 1946, Biometrics Bulletin 2:110; Welch 1947, Biometrika 34:28). With
# a = s_x^2 / n and r = s_r^2 / n_b, s_r^2 = (SS_H + SS_B) / df_r:
#
#     df = (a + r)^2 / (a^2 / (n - 1) + r^2 / df_r),   never below n - 1

# Baseline runs of the same weeks that a look needs, as a share of the candidate's.
BESIDE_SHARE = 0.5


@dataclass(frozen=True)
class Samples:
    """Final metrics, higher is better: candidate, baseline of the same weeks, history.

    ``after`` has, for every baseline run, how many of the candidate's runs came before it;
    without it the arms took turns, the baseline first.
    """

    candidate: Sequence[float]
    baseline: Sequence[float]
    history: Sequence[float]
    after: Sequence[int] | None = None

    @property
    def degrees_of_freedom(self) -> int:
        """(n_0 - 1) + (n_b - 1) + (n - 1), each at least 0."""
        return sum(max(len(values) - 1, 0) for values in self._all)

    @property
    def pooled_variance(self) -> float | None:
        """(SS_H + SS_B + SS_x) / df, None without a degree of freedom."""
        df = self.degrees_of_freedom
        return math.fsum(map(squares, self._all)) / df if df else None

    def baseline_at(self, runs: int) -> int | None:
        """Baseline runs that a look at so many candidate runs sees; None while it lacks some.

        Those before the candidate's last of these runs, and later ones only until the look has
        as many as it needs. So a look's samples follow from the order of runs alone, and what
        comes later cannot change them: a look is one test, however often the judge is called.
        """
        needed, after = baseline_needed(runs), self.after
        before = sum(
            (place if after is None else after[place]) < runs for place in range(len(self.baseline))
        )
        seen = max(before, needed)
        return seen if seen <= len(self.baseline) and runs <= len(self.candidate) else None

    def first(self, runs: int) -> Samples:
        """What the look at so many candidate runs sees; what came later waits for the next.

        Every baseline run where there are too few for a look.
        """
        beside = self.baseline_at(runs)
        baseline = self.baseline if beside is None else self.baseline[:beside]
        return Samples(self.candidate[:runs], baseline, self.history)

    @property
    def _all(self) -> tuple[Sequence[float], ...]:
        return (self.history, self.baseline, self.candidate)


@dataclass(frozen=True)
class Comparison:
    """Difference candidate minus reference in the metric's unit; negative is worse."""

    difference: float
    spread: float
    df: float
    runs: int
    reference_runs: int  # n_b

    @property
    def standard_error(self) -> float:
        """s sqrt(v)."""
        return self.error_at(self.runs, self.reference_runs)

    def error_at(self, runs: float, reference_runs: float) -> float:
        """The standard error that so many runs would have."""
        return self.spread * math.sqrt(1 / runs + 1 / reference_runs)

    def p_inferior(self, margin: float) -> float:
        """P(T_df > (D + margin) / se): chance of this, or better, at a loss of ``margin``."""
        return upper_tail((self.difference + margin) / self.standard_error, self.df)

    @property
    def p_worse(self) -> float:
        """P(T_df > -D / se): chance of this, or worse, without any loss."""
        return upper_tail(-self.difference / self.standard_error, self.df)

    def interval(self, level: float) -> tuple[float, float]:
        """Difference with one-sided error ``level`` on each side."""
        half = quantile(1 - level, self.df) * self.standard_error
        return (self.difference - half, self.difference + half)


def baseline_needed(runs: int) -> int:
    """Baseline runs of the same weeks that a look at so many candidate runs needs."""
    return max(1, math.ceil(BESIDE_SHARE * runs))


def compare(samples: Samples) -> Comparison | None:
    """The comparison, None without runs of both arms or without a spread to go by."""
    pooled, n, beside = samples.pooled_variance, len(samples.candidate), len(samples.baseline)
    if pooled is None or not n or not beside:
        return None
    own = squares(samples.candidate) / (n - 1) if n >= 2 else 0.0
    df = float(samples.degrees_of_freedom)
    return Comparison(
        difference=mean(samples.candidate) - mean(samples.baseline),
        spread=math.sqrt(max(pooled, own)),
        df=_own_spread_df(samples, own) if own > pooled else df,
        runs=n,
        reference_runs=beside,
    )


def _own_spread_df(samples: Samples, own: float) -> float:
    """Satterthwaite's degrees of freedom; ``own`` is the candidate's variance, the larger one."""
    n, rest = len(samples.candidate), Samples((), samples.baseline, samples.history)
    mine = own / n
    theirs = (rest.pooled_variance or 0.0) / len(samples.baseline)
    spread = mine**2 / (n - 1)
    if theirs:
        spread += theirs**2 / rest.degrees_of_freedom
    return max((mine + theirs) ** 2 / spread, n - 1.0)


# When each gate looks at the data, and how much of the error each look may spend.
#
# The speed gate looks at fixed numbers of blocks, which share its error evenly (Bonferroni). The
# quality gate looks at fixed numbers of candidate runs. Look n of n_max spends
#
#     a(n) = c x level x n / n_max
#
# a power-family spending schedule (Lan and DeMets 1983; exponent 1): as little as few runs say.
# With c = 1 / sum(n / n_max) the looks add up to ``level`` (Bonferroni), which needs no
# assumption on how they depend on each other. The larger constants use that dependence; they
# come from a simulation of the test at the margin (benchmarks/decision/calibrate.py): one test
# at each look however often the judge is called, one to eight candidates, any history, as few
# baseline runs as the rules allow or more. What a metric that moves within the trial spends is in
# benchmarks/decision/README.md.

SPEED_LOOKS = (3, 4, 6)
SCHEDULE = (2, 3, 5, 8, 12, 18, 24, 36, 54, 72, 96)
CALIBRATED: Mapping[int, float] = {
    2: 1.0, 3: 0.86, 5: 0.71, 8: 0.67, 12: 0.60, 18: 0.58, 24: 0.53, 36: 0.51, 54: 0.52, 72: 0.47,
    96: 0.45,
}  # fmt: skip


def speed_level(alpha: float, candidates: int) -> float:
    """The error that one look of the speed gate may spend on one of several candidates."""
    return alpha / (len(SPEED_LOOKS) * candidates)


def speed_look_at(blocks: int) -> int | None:
    """The last look of the speed gate that so many blocks have reached, None before the first."""
    return max((look for look in SPEED_LOOKS if look <= blocks), default=None)


def last_look(most: float) -> int | None:
    """The largest look within ``most`` runs, None below two: a spread needs two."""
    return max((n for n in SCHEDULE if n <= most), default=None)


def looks(n_max: int) -> tuple[int, ...]:
    """The looks of a design that ends at ``n_max``, itself a look."""
    return SCHEDULE[: SCHEDULE.index(n_max) + 1]


def spent(n: int, n_max: int, level: float) -> float:
    """a(n): the error that the look at ``n`` runs may spend."""
    return CALIBRATED[n_max] * level * n / n_max


def look_at(n: int, n_max: int) -> int | None:
    """The last look that ``n`` runs have reached, None before the first."""
    return last_look(min(n, n_max))


def next_look(n: int, n_max: int) -> int | None:
    """The look after ``n`` runs, None after the last."""
    return next((look for look in looks(n_max) if look > n), None)


# How many runs a proof takes, before any is paid for.
#
# A look at n candidate runs beside n_b baseline runs proves the margin m with probability
# ``chance`` for a candidate that loses nothing when
#
#     m / (s sqrt(v_n)) >= t_{1 - a(n), df} + t_{chance, df}
#
# which is the sample size of a non-inferiority trial with normal data (Julious 2004, Statistics
# in Medicine 23:1921) with Student's quantiles; v_n and df are those of the comparison
# and a(n) is the error of the look, both above.

LIKELY = 0.8
VERY_LIKELY = 0.9
EVEN = 0.5
# Runs per arm beyond which no number is named.
MOST_RUNS = 500
# Runs that production makes anyway cost little: a fair chance of a proof is enough.
FAIR = 0.2
# Of the promoting rule, however seldom a harmful candidate passes the equivalence check.
GREATEST_LEVEL = 0.25
# The policy's default suits hybrid and canary runs; extra runs are dearer, and 12 suffice. Of
# extra runs a team may ask for more, up to LONGEST_SHADOW; later looks are production's.
SHADOW_RUNS, LONGEST_SHADOW = 12, 36
# The default as evidence of judge 1 records it, and today's: neither asks for extra runs.
DEFAULTS = frozenset({36, Policy().max_quality_runs})
# Candidate runs that a proof may take, as shares of the runs left: with as many of the baseline,
# all of them up to the look at 36, and four fifths of them for the later looks.
SHARE, LONG_SHARE = 0.5, 0.4


@dataclass(frozen=True)
class Design:
    """What a proof may use: past runs, the last look and the ``error`` of one candidate, alpha/K.

    ``least_chance``: a trial that would prove the margin less often than this is refused. ``rho``
    is that of the equivalence check.
    """

    history: int
    n_max: int
    error: float
    least_chance: float = EVEN
    rho: float = 1.0

    @property
    def level(self) -> float:
        """a: the error that the promoting rule may spend over all looks (equivalence.py)."""
        return max(self.error, min(GREATEST_LEVEL, self.error / self.rho))

    def provable_margin(self, n: int, chance: float = LIKELY) -> float:
        """Smallest margin, in standard deviations, that ``n`` runs, two or more, would prove.

        As many baseline runs of the same weeks are counted as candidate runs.
        """
        df = max(self.history - 1, 0) + 2 * (n - 1)
        quantiles = quantile(1 - spent(n, self.n_max, self.level), df)
        quantiles += quantile(chance, df)
        return quantiles * math.sqrt(2 / n)

    def runs_needed(self, relative_spread: float, chance: float = LIKELY) -> int | None:
        """First look that proves the margin at ``relative_spread`` = sd / margin; None: none."""
        proving = (
            n for n in looks(self.n_max) if self.provable_margin(n, chance) * relative_spread <= 1
        )
        return next(proving, None)

    def best_margin(self, chance: float = LIKELY) -> float:
        """Smallest margin, in standard deviations, that any look would prove."""
        return min(self.provable_margin(n, chance) for n in looks(self.n_max))


def runs_for_one_look(
    relative_spread: float,
    *,
    history: int,
    level: float,
    chance: float = LIKELY,
    limit: int = MOST_RUNS,
) -> int | None:
    """Runs per arm that a test without interim looks needs; None above ``limit``."""

    def proves(n: int) -> bool:
        df = max(history - 1, 0) + 2 * (n - 1)
        needed = quantile(1 - level, df) + quantile(chance, df)
        error = relative_spread * math.sqrt(2 / n)
        return 1 / error >= needed

    if not proves(limit):  # more runs never prove less
        return None
    return bisect_left(range(limit), True, lo=2, key=proves)


def design_for(
    policy: Policy,
    *,
    history: int,
    candidates: int,
    runs_remaining: float | None,
    rho: float = 1.0,
) -> Design | None:
    """What the proof of one of several candidates may use; None if not even two runs are left."""
    left = math.inf if runs_remaining is None else runs_remaining
    allowed = allowed_runs(policy)
    first = last_look(min(allowed, left * SHARE, LONGEST_SHADOW))
    if first is None:
        return None
    later = last_look(min(allowed, left * LONG_SHARE))
    return Design(
        history=history,
        n_max=first if later is None else max(first, later),
        error=policy.alpha / candidates,
        least_chance=EVEN if policy.quality_runs == "shadow" else FAIR,
        rho=rho,
    )


def runs_left_for(n: int) -> int:
    """Production runs that must be left for a proof that ends with the look at ``n``."""
    return math.ceil(n / (SHARE if n <= LONGEST_SHADOW else LONG_SHARE))


def allowed_runs(policy: Policy) -> int:
    """Full runs per candidate that policy allows in its mode."""
    most = policy.max_quality_runs
    if policy.quality_runs != "shadow":
        return most
    return SHADOW_RUNS if most in DEFAULTS else min(most, LONGEST_SHADOW)


# How much earlier runs of the baseline say of where it stands today.
#
# Earlier runs may have drifted: their mean is taken to be off by a normal error of sd kappa x
# sigma. So many of them, n_0, are worth
#
#     w = 1 / (1/n_0 + kappa^2)    runs of today, never more than 1/kappa^2 = 4
#
# the location commensurate prior of Hobbs, Carlin, Mandrekar and Sargent (2011, Biometrics
# 67:1047) with a fixed precision 1/(kappa sigma)^2. Where today's runs contradict them beyond
# what kappa allows, they are set aside. Wall clocks and the watch of production use this; the
# quality gate does not.

# Drift that is allowed for, in standard deviations.
KAPPA = 0.5
# Earlier runs count as drifted when they and today's differ by more than this many standard
# errors (16 % of undrifted ones do: they merely count for less).
CONFLICT = 1.4


def history_weight(n_history: int, kappa: float = KAPPA) -> float:
    """w: how many runs of today ``n_history`` earlier ones are worth."""
    return 1 / (1 / n_history + kappa**2) if n_history else 0.0


def allowed_drift(history: Sequence[float], today: Sequence[float], variance: float) -> float:
    """The drift that is allowed for, or the one that today's runs show if that is larger."""
    if not history or not today or variance <= 0:
        return KAPPA
    shift = (mean(today) - mean(history)) ** 2 / variance
    expected = 1 / len(history) + 1 / len(today) + KAPPA**2
    return KAPPA if shift <= CONFLICT**2 * expected else math.sqrt(shift)
