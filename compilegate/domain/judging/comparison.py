"""The comparison behind the quality gate: candidate against baseline, with history.

Estimand: the mean final metric of runs of different seeds, candidate minus baseline, on what
production trains on while the candidate's own runs are made. x are the candidate's final
metrics (n), B the baseline's of the same weeks (n_b), H its history (n_0), all turned so that
higher is better; quality.py says which run is which. History tells how much the metric
varies from run to run, never where it stands: data moves, and a history that is off by half a
standard deviation would double the error of a test that trusted its mean.

    D = mean(x) - mean(B),   v = 1/n + 1/n_b
    s^2 = max{(SS_H + SS_B + SS_x) / df, SS_x / (n - 1)}

The spread is never taken smaller than the candidate's own: a compiler that makes training
less stable must not hide behind a calm baseline. Where the candidate's own is the larger, it
rests on the candidate's few runs, and df is that of a difference of two means with different
spreads (Satterthwaite 1946, Biometrics Bulletin 2:110; Welch 1947, Biometrika 34:28). With
a = s_x^2 / n and r = s_r^2 / n_b, s_r^2 = (SS_H + SS_B) / df_r:

    df = (a + r)^2 / (a^2 / (n - 1) + r^2 / df_r),   never below n - 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.arithmetic import mean, squares
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, finished, metrics
from compilegate.domain.judging.student import quantile, upper_tail

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


# Which full runs the quality gate compares for one candidate, and what is history to it.
#
# The baseline's runs of *the same weeks* as a candidate's are those from its own first run on,
# and the last one before it. Earlier ones of the trial were made in the weeks of another
# candidate: they are history, beside what the team gave. Were they counted as of today, a metric
# that rises by a twentieth of its spread every run would promote one in six second candidates
# that lose the whole margin.
#
# Runs of one seed on the same data are no replicates of each other: a second one says how much a
# machine's arithmetic varies, not how much training does. The first of them counts. A run without
# a recorded seed counts; data of which nothing is recorded is taken to be the same.


def compared_runs(
    candidate: Arm, evidence: Evidence
) -> tuple[list[FullRun], list[FullRun], list[FullRun]]:
    """The candidate's finished runs that count, the baseline's, and the baseline's of before.

    Before the candidate's first run the baseline's last one will be the one before it.
    """
    ours, theirs = (replicates(finished(arm.quality)) for arm in (candidate, evidence.baseline))
    before = [run for run in theirs if not ours or run.order < ours[0].order]
    split = max(len(before) - 1, 0)
    return ours, theirs[split:], theirs[:split]


def replicates(runs: Sequence[FullRun]) -> list[FullRun]:
    """The runs without those that repeat a seed on the same data."""
    seen: set[tuple[int | None, str | None]] = set()
    kept = []
    for run in runs:
        draw = run.seed, run.data
        if run.seed is None or draw not in seen:
            kept.append(run)
        seen.add(draw)
    return kept


def samples_of(candidate: Arm, evidence: Evidence) -> Samples:
    """The final metrics that the gate compares, higher is better."""
    ours, theirs, earlier = compared_runs(candidate, evidence)
    return Samples(
        candidate=evidence.oriented(metrics(ours)),
        baseline=evidence.oriented(metrics(theirs)),
        history=evidence.oriented([*evidence.quality.history, *metrics(earlier)]),
        after=tuple(sum(own.order < run.order for own in ours) for run in theirs),
    )
