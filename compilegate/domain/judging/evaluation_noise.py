"""Splits the spread of a metric: what its evaluation set adds, and what training itself does.

A metric that is a mean over N held-out examples varies between runs for two reasons. Outcome of
run r on example i: y_ri = mu_i + d_r + e_ri. d_r is what the run is better or worse by on every
set (variance sigma_D^2, "distribution-wise"), e_ri is chance of run and example together, averaged
over the N examples. Over R runs of an arm on one set, s^2 the variance of their means:

    tau^2       = mean_i of the variance over runs of y_ri, R/(R-1) mean p_i (1 - p_i) for bits
    sigma_D^2   = max(0, N/(N-1) (s^2 - tau^2/N))
    sigma(N')^2 = sigma_D^2 + tau^2/N'          on N' examples of the same kind
    wanted N'   = tau^2 / (sigma_target^2 - sigma_D^2)

with tau^2 pooled over arms by degrees of freedom. E tau^2 = sigma_D^2 + var(e) and E s^2 =
sigma_D^2 + var(e)/N, so sigma_D^2 before the maximum is unbiased; sigma(N')^2 counts sigma_D^2/N'
twice, on the safe side. Difficulty mu_i cancels, because every run is scored on the same set.

tau^2 rests on thousands of examples, s^2 on a few runs: by chance it is often near tau^2/N, and
sigma_D^2 then 0. A larger set would be promised too much. What larger sets bring is therefore
reckoned with the median of the true s^2, given the measured one and that it is at least tau^2/N (a
flat prior on its logarithm): no benefit is promised that a few runs cannot show.

Source: Jordan, "Variance of neural network training" (ICLR 2024, arXiv 2304.01910), section 3;
Miller, "Adding error bars to evals" (arXiv 2411.00640), section 2. Units: the metric's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add, mul

from compilegate.domain.arithmetic import normal_below
from compilegate.domain.judging.outcomes import Outcomes

# Limits of a range in which sigma_D lies with 80 %: the normal quantile of 90 %.
NORMAL_90 = 1.2816
# Where the approximation of a chi-squared distribution by a cubed normal one is no longer good.
FAR_BELOW = -2.5
FARTHEST, BISECTIONS = 9.0, 60


@dataclass(frozen=True)
class Split:
    """A spread ``sd`` with ``df`` degrees of freedom in two parts; variances as in the module.

    ``examples`` is N, in outcomes; ``per_outcome`` examples stand behind each.
    """

    sd: float
    df: int
    examples: int
    tau_squared: float
    per_outcome: int = 1

    @property
    def evaluation_sd(self) -> float:
        """tau / sqrt(N): what the choice of so many examples adds."""
        return math.sqrt(self.tau_squared / self.examples)

    @property
    def training_sd(self) -> float:
        """sigma_D: what is left on an endless set."""
        return self._training_sd(self.sd**2)

    @cached_property
    def training_range(self) -> tuple[float, float]:
        """sigma_D at the limits of an 80 % interval of s^2, by its chi-squared distribution."""
        low, high = (df_over_chi_squared(self.df, z) * self.sd**2 for z in (NORMAL_90, -NORMAL_90))
        return self._training_sd(low), self._training_sd(high)

    @cached_property
    def expected_training_sd(self) -> float:
        """sigma_D at the median of the true s^2, given what was measured."""
        return self._training_sd(median_variance(self.sd**2, self.df, self.evaluation_sd**2))

    def at(self, examples: float) -> float:
        """sigma(N'): the spread to expect on so many outcomes."""
        return math.sqrt(self.expected_training_sd**2 + self.tau_squared / examples)

    def at_most_favourable(self, examples: float) -> float:
        """The same were sigma_D at the lower end of its range."""
        return math.sqrt(self.training_range[0] ** 2 + self.tau_squared / examples)

    def wanted(self, target_sd: float) -> int | None:
        """Outcomes on which the spread is ``target_sd``; None where no number is enough."""
        room = target_sd**2 - self.expected_training_sd**2
        return None if room <= 0 else math.ceil(self.tau_squared / room)

    def _training_sd(self, variance: float) -> float:
        n = self.examples
        return math.sqrt(max(0.0, n / (n - 1) * (variance - self.tau_squared / n)))


def df_over_chi_squared(df: int, z: float) -> float:
    """df over the chi-squared quantile that a normal ``z`` has (Wilson and Hilferty 1931).

    Within 2 % of exact for df >= 3 and |z| <= 1.3; infinite where the cube root is not positive.
    """
    root = 1 - 2 / (9 * df) + z * math.sqrt(2 / (9 * df))
    return math.inf if root <= 0 else root**-3


def median_variance(measured: float, df: int, least: float) -> float:
    """Median of a variance that is at least ``least``, of which ``measured`` was seen with ``df``.

    With a flat prior on ln V, df x measured / V is chi-squared, cut at V = least: the median has
    half of the chance that the cut leaves (Wilson and Hilferty's approximation).
    """
    centre, width = 1 - 2 / (9 * df), math.sqrt(2 / (9 * df))
    if least <= 0:
        return measured * df_over_chi_squared(df, 0.0)
    cut = ((measured / least) ** (1 / 3) - centre) / width
    if cut < FAR_BELOW:  # what remains of the distribution is a power of V alone
        return least * 2 ** (2 / df)
    return max(least, measured * df_over_chi_squared(df, _normal_quantile(normal_below(cut) / 2)))


def _normal_quantile(p: float) -> float:
    """z with P(Z <= z) = p, by bisection."""
    low, high = -FARTHEST, FARTHEST
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_below(middle) < p else (low, middle)
    return (low + high) / 2


def tau_squared(arms: Sequence[Sequence[Outcomes]]) -> float | None:
    """Variance of an outcome over runs, mean over the examples, pooled over arms.

    Every run must be of one population. None where no arm has two runs.
    """
    parts = [(len(runs) - 1, _tau_squared(runs)) for runs in arms if len(runs) > 1]
    df = sum(weight for weight, _ in parts)
    return math.fsum(weight * value for weight, value in parts) / df if df else None


def _tau_squared(runs: Sequence[Outcomes]) -> float:
    """sum_i [sum_r y^2 - (sum_r y)^2 / R] / (R - 1) / N, of bits in whole numbers."""
    count, kept = len(runs), runs[0].kept
    bits = [run.bits for run in runs if run.bits is not None]
    if bits:
        right = sum(one.bit_count() for one in bits)
        return (right - _squared_counts(bits) / count) / (count - 1) / kept
    totals = [0.0] * kept
    squared = 0.0
    for run in runs:
        totals = list(map(add, totals, run.losses))
        squared += math.fsum(map(mul, run.losses, run.losses))
    spread = squared - math.fsum(map(mul, totals, totals)) / count
    return max(0.0, spread) / (count - 1) / kept


def _squared_counts(bits: Sequence[int]) -> int:
    """sum_i c_i^2, of c_i runs that are right on example i.

    Counts all examples at once: ``digits`` are the binary digits of every c_i, the lowest first.
    """
    digits: list[int] = []
    for one in bits:
        carry = one
        for place, digit in enumerate(digits):
            digits[place], carry = digit ^ carry, digit & carry
        if carry:
            digits.append(carry)
    places = list(enumerate(digits))
    return sum((a & b).bit_count() << (i + j) for i, a in places for j, b in places)
