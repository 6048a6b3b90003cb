"""How many runs a proof takes, before any is paid for.

A look at n candidate runs beside n_b baseline runs proves the margin m with probability
``chance`` for a candidate that loses nothing when

    m / (s sqrt(v_n)) >= t_{1 - a(n), df} + t_{chance, df}

which is the sample size of a non-inferiority trial with normal data (Julious 2004, Statistics
in Medicine 23:1921) with Student's quantiles; v_n and df are those of the comparison
(noninferiority.py) and a(n) is the look's error (looks.py).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from compilegate.domain.judging import student_t
from compilegate.domain.judging.looks import last_look, looks, spent
from compilegate.domain.workload.model import Policy

LIKELY = 0.8
VERY_LIKELY = 0.9
EVEN = 0.5
# Runs per arm beyond which no number is named.
MOST_RUNS = 500
# Runs that production makes anyway cost little: a fair chance of a proof is enough.
FAIR = 0.2
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
    """What a proof may use: past runs, the last look and the error of one candidate.

    ``least_chance``: a trial that would prove the margin less often than this is refused.
    """

    history: int
    n_max: int
    level: float
    least_chance: float = EVEN

    def provable_margin(self, n: int, chance: float = LIKELY) -> float | None:
        """Smallest margin, in standard deviations, that ``n`` runs would prove; None without df.

        As many baseline runs of the same weeks are counted as candidate runs.
        """
        df = max(self.history - 1, 0) + 2 * (n - 1)
        if df < 2:
            return None
        quantiles = student_t.quantile(1 - spent(n, self.n_max, self.level), df)
        quantiles += student_t.quantile(chance, df)
        return quantiles * math.sqrt(2 / n)

    def runs_needed(self, relative_spread: float, chance: float = LIKELY) -> int | None:
        """First look that proves the margin at ``relative_spread`` = sd / margin; None: none."""
        for n in looks(self.n_max):
            provable = self.provable_margin(n, chance)
            if provable is not None and provable * relative_spread <= 1:
                return n
        return None

    def best_margin(self, chance: float = LIKELY) -> float:
        """Smallest margin, in standard deviations, that any look would prove."""
        margins = (self.provable_margin(n, chance) for n in looks(self.n_max))
        return min(margin for margin in margins if margin is not None)


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
        needed = student_t.quantile(1 - level, df) + student_t.quantile(chance, df)
        error = relative_spread * math.sqrt(2 / n)
        return 1 / error >= needed

    if not proves(limit):  # more runs never prove less
        return None
    return bisect_left(range(limit), True, lo=2, key=proves)


def design_for(
    policy: Policy, *, history: int, candidates: int, runs_remaining: float | None
) -> Design | None:
    """What the proof of one of several candidates may use; None if not even two runs are left."""
    left = math.inf if runs_remaining is None else runs_remaining
    allowed = allowed_runs(policy)
    n_max = last_look(min(allowed, left * SHARE, LONGEST_SHADOW))
    if n_max is None:
        return None
    longer = last_look(min(allowed, left * LONG_SHARE))
    return Design(
        history=history,
        n_max=max(n_max, longer or 0),
        level=policy.alpha / candidates,
        least_chance=EVEN if policy.quality_runs == "shadow" else FAIR,
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
