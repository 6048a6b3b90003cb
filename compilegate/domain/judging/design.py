"""When the quality gate looks, how much of its error each look may spend, and what that proves.

It looks at fixed numbers of candidate runs. Look n of n_max spends

    a(n) = c x level x n / n_max

The promoting rule's level is a = min(0.25, alpha / (K rho)), by the equivalence check's rho
(equivalence.py), and at least alpha/K. That of the rule which ends an arm is in quality.py.

The schedule is a power family's (Lan and DeMets 1983; exponent 1): as little as few runs say. With
c = 1 / sum(n / n_max) the looks add up to the level (Bonferroni), which needs no assumption on how
they depend on each other. The larger constants use that dependence; they come from a simulation of
the test at the margin (benchmarks/decision/calibrate.py): one test at each look however often the
judge is called, one to eight candidates, any history, as few baseline runs as the rules allow or
more. They were found for levels up to 0.05 and spend a smaller share of greater ones. What a metric
that moves within the trial spends is in benchmarks/decision/README.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from compilegate.domain.judging.student import quantile
from compilegate.domain.workload.model import Policy

SCHEDULE = (2, 3, 5, 8, 12, 18, 24, 36, 54, 72, 96)
CALIBRATED: Mapping[int, float] = {
    2: 1.0, 3: 0.86, 5: 0.71, 8: 0.67, 12: 0.60, 18: 0.58, 24: 0.53, 36: 0.51, 54: 0.52, 72: 0.47,
    96: 0.45,
}  # fmt: skip


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
    is that of the equivalence check. ``metrics`` share the chance that a sound candidate is given
    up as worse.
    """

    history: int
    n_max: int
    error: float
    least_chance: float = EVEN
    rho: float = 1.0
    metrics: int = 1

    @property
    def level(self) -> float:
        """a: the error that the promoting rule may spend over all looks."""
        return max(self.error, min(GREATEST_LEVEL, self.error / self.rho))

    def provable_margin(self, n: int, chance: float = LIKELY) -> float:
        """Smallest margin, in standard deviations, that ``n`` runs, two or more, would prove."""
        return provable(n, self.history, spent(n, self.n_max, self.level), chance)

    def runs_needed(self, relative_spread: float, chance: float = LIKELY) -> int | None:
        """First look that proves the margin at ``relative_spread`` = sd / margin; None: none."""
        proving = (
            n for n in looks(self.n_max) if self.provable_margin(n, chance) * relative_spread <= 1
        )
        return next(proving, None)

    def best_margin(self, chance: float = LIKELY) -> float:
        """Smallest margin, in standard deviations, that any look would prove."""
        return min(self.provable_margin(n, chance) for n in looks(self.n_max))

    def why_underpowered(self, spread: float, margin: float) -> str:
        """Why a trial could hardly prove the margin at this spread; empty where it could."""
        if self.runs_needed(spread / margin, self.least_chance) is not None:
            return ""
        return (
            f"the metric varies by {spread:.4g} from run to run; {self.n_max} runs could prove a "
            f"margin of {self.best_margin() * spread:.4g}, not {margin:g}"
        )


def provable(n: int, history: int, level: float, chance: float) -> float:
    """Smallest margin, in standard deviations, that one look proves with this chance.

    As many baseline runs of the same weeks are counted as candidate runs.
    """
    df = max(history - 1, 0) + 2 * (n - 1)
    return (quantile(1 - level, df) + quantile(chance, df)) * math.sqrt(2 / n)


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
        return provable(n, history, level, chance) * relative_spread <= 1

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
    metrics: int = 1,
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
        metrics=metrics,
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
