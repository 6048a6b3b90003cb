"""The speed-up of whole jobs: one estimand, predicted by blocks and measured by full runs.

The estimand is theta = ln(E T_B / E T_C), T the wall clock of a whole job of the planned number
of steps: start-up, compilation and recompilations, steps, evaluation, saving.

Prediction. Blocks show overhead, steady step and time lost (speed.py: L_b). What a job does
outside its steps, F, no block sees; full runs that recorded ``seconds`` in steps beside their
wall clock tell it. Without it F = 0.

    P = mean over blocks of ln[(F_B + run_B) / (F_C + run_C)]    v_P = s_L^2 / R

Measurement. On ln(wall clock at equal steps): D = mean(ln T_B) - mean(ln T_C),
v_D = s_T^2 (1/n_C + 1/w_B), where w_B counts runs of today fully and earlier ones under drift
(drift.py). Jobs on other data, and declared early stops, are scaled to equal steps
(run_work.py); jobs that did other work are not compared.

Few runs show no spread reliably, so both variances are moderated by a prior worth 3 degrees of
freedom (scaled inverse chi-square, Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3; Student's t
then has nu + 3):    s^2 = (3 s_0^2 + SS) / (3 + nu)
s_0 of blocks is speed.assumed_spread, s_0 of walls 8 % (Sinha et al. 2022, arXiv 2208.11035).

Disagreement. A prediction misses by a random effect N(0, tau^2), for recompilations that no
block saw and whatever else differs between a short and a whole job. One disagreement of two
sources measures tau poorly, so it is never below a prior scale tau_0, and above it what the
sources show (DerSimonian and Laird 1986 for two sources):

    tau^2 = max{tau_0^2, (P - D)^2 - v_P - v_D}

tau_0 = UNSEEN_SD: by calibration on the simulated fleet (benchmarks/decision), where late
recompilations lie log-uniform over the run.

    theta = (D / v_D + P / (v_P + tau^2)) / (1/v_D + 1/(v_P + tau^2)),  a_i the weights' shares
    v = [1 + 4 sum a_i (1 - a_i) / nu_i] / (sum of weights),   1/nu = sum a_i^2 / nu_i

(Meier 1953, Biometrics 9:59: the weights are estimated). Full runs alone stay unbiased where
blocks are not: the more both differ, the less the blocks count. Before full runs, theta = P and
v = v_P + tau_0^2.

Too fast. Recompilations that no block saw make a whole job slower than predicted, nothing makes it
much faster: D above the most that blocks predict (late events counted once), by more than ln 1.1
and t(0.99865) sqrt(v_P + tau_0^2 + v_D), says that full runs left something out.

Selection. One of K candidates is chosen by its speed, so its interval works at 0.05/K: of
intervals for one chosen of K at level 1 - q/K, at most a share q is false (false coverage rate,
Benjamini and Yekutieli 2005, JASA 100:71).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain.arithmetic import mean, squares
from compilegate.domain.decision import (
    SHADOW,
    ComparedRuns,
    Interval,
    SpeedSource,
    Speedup,
)
from compilegate.domain.judging.drift import KAPPA, allowed_drift, history_weight
from compilegate.domain.judging.evidence import Arm, Evidence, finished, mean_or_none, walls
from compilegate.domain.judging.run_work import SAME_WORK, ComparableWalls, figure, steps_of
from compilegate.domain.judging.speed import (
    SpeedFinding,
    assumed_spread,
    block_log_speedups,
    log_price_ratio,
)
from compilegate.domain.judging.student import CONFIDENCE, quantile

# Prior degrees of freedom of both spreads: as much as the fewest blocks of a look tell.
PRIOR_DF = 3.0
# Spread of ln(wall clock) over nodes that is assumed where runs are too few to measure it.
WALL_SD = 0.08
# tau_0: how far blocks that agree are off a whole job.
UNSEEN_SD = 0.02
# Whole jobs may be this much faster than blocks leave possible, before they count as another job's.
TOO_FAST = 1.1
# Level of "beyond doubt": three standard errors of a normal variable, one-sided.
BEYOND_DOUBT = 0.00135


@dataclass(frozen=True)
class Source:
    """One estimate of ln(speed-up) with the variance of its chance and degrees of freedom."""

    log: float
    variance: float
    df: float
    baseline_runs: int
    candidate_runs: int

    @property
    def figures(self) -> SpeedSource:
        """As the decision has it."""
        half = quantile(0.5 + CONFIDENCE / 2, self.df) * math.sqrt(self.variance)
        return SpeedSource(
            estimate=math.exp(self.log),
            interval=(math.exp(self.log - half), math.exp(self.log + half)),
            runs=ComparedRuns(self.baseline_runs, self.candidate_runs),
        )


@dataclass(frozen=True)
class WholeJob:
    """The estimate of theta; ``disagreement`` is tau, ``confidence`` that of ``interval``.

    ``weight`` is the share of the full runs in it, 0 before the first. ``implausible``: the full
    runs are beyond doubt faster than the blocks leave possible.
    """

    log: float
    standard_error: float
    df: float
    disagreement: float
    weight: float
    level: float
    predicted: Source | None
    measured: Source | None
    implausible: bool = False

    @property
    def speedup(self) -> float:
        """Baseline's time over the candidate's."""
        return math.exp(self.log)

    @property
    def interval(self) -> Interval:
        """Two-sided, of ratios; its error is the ``level``, shared by the candidates."""
        return math.exp(self.bound(self.level / 2)), math.exp(self.upper(self.level / 2))

    def bound(self, level: float) -> float:
        """One-sided lower bound of theta."""
        return self.log - quantile(1 - level, self.df) * self.standard_error

    def upper(self, level: float) -> float:
        """One-sided upper bound of theta."""
        return self.log + quantile(1 - level, self.df) * self.standard_error

    def figures(self, speed: SpeedFinding) -> Speedup:
        """As the decision has it, with what the gate of the blocks says."""
        predicted, measured = self.predicted, self.measured
        return Speedup(
            estimate=self.speedup,
            interval=self.interval,
            confidence=CONFIDENCE,
            lower_bound=speed.lower_bound,
            blocks=speed.blocks,
            full_runs=measured.candidate_runs if measured else 0,
            predicted=predicted.figures if predicted else None,
            measured=measured.figures if measured else None,
            weight=self.weight,
            disagreement=self.disagreement,
        )


def estimate_whole_job(candidate: Arm, evidence: Evidence) -> WholeJob | None:
    """The estimate from what there is; None before the first block and full run."""
    outside = (
        outside_seconds(evidence.baseline, candidate),
        outside_seconds(candidate, evidence.baseline),
    )
    logs = block_log_speedups(candidate, evidence, outside=outside)
    calm = block_log_speedups(candidate, evidence, outside=outside, calm=True)
    predicted, measured = None, _measured(candidate, evidence)
    if logs:
        variance, df = moderated([logs], assumed_spread(candidate, evidence))
        predicted = Source(mean(logs), variance / len(logs), df, len(logs), len(logs))
    tau, implausible = UNSEEN_SD, False
    if predicted and measured:
        apart = (predicted.log - measured.log) ** 2 - predicted.variance - measured.variance
        tau = math.sqrt(max(tau**2, apart))
        implausible = _implausible(predicted, measured, most=max(mean(calm), predicted.log))
    sources = [(one, one.variance + extra) for one, extra in ((predicted, tau**2), (measured, 0.0))
               if one is not None]  # fmt: skip
    if not sources:
        return None
    weights = [1 / variance for _, variance in sources]
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    pairs = [(share, one.df) for share, (one, _) in zip(shares, sources, strict=True)]
    estimated = 1 + 4 * math.fsum(share * (1 - share) / df for share, df in pairs)
    return WholeJob(
        log=math.fsum(share * one.log for share, (one, _) in zip(shares, sources, strict=True)),
        standard_error=math.sqrt(estimated / total),
        df=1 / math.fsum(share**2 / df for share, df in pairs),
        disagreement=tau,
        weight=shares[-1] if measured else 0.0,
        level=(1 - CONFIDENCE) / evidence.sharing,
        predicted=predicted,
        measured=measured,
        implausible=implausible,
    )


def _implausible(predicted: Source, measured: Source, *, most: float) -> bool:
    """Whether full runs are beyond doubt above TOO_FAST times the most that blocks predict."""
    spread = math.sqrt(predicted.variance + UNSEEN_SD**2 + measured.variance)
    doubt = quantile(1 - BEYOND_DOUBT, min(predicted.df, measured.df)) * spread
    return measured.log > most + math.log(TOO_FAST) + doubt


def _measured(candidate: Arm, evidence: Evidence) -> Source | None:
    """By the wall clocks at equal steps; of runs that did other work nothing is taken."""
    baseline = evidence.baseline
    ours, today = (
        list(map(math.log, ComparableWalls(arm, evidence).of(arm.full_runs)))
        for arm in (candidate, baseline)
    )
    earlier: Sequence[float] = list(map(math.log, evidence.history_wall_seconds))
    if evidence.quality.early_stopping and stop_early(candidate, baseline):
        earlier = ()  # their steps are not known
    if not ours or not (today or earlier):
        return None
    variance, df = moderated([ours, today, earlier], WALL_SD)
    if allowed_drift(earlier, today, variance) > KAPPA:  # today's runs contradict them
        earlier = ()
    weight = history_weight(len(earlier))
    total = weight * mean(earlier) if earlier else 0.0
    reference = (total + math.fsum(today)) / (weight + len(today))
    return Source(
        log=reference - mean(ours),
        variance=variance * (1 / len(ours) + 1 / (weight + len(today))),
        df=df,
        baseline_runs=len(earlier) + len(today),
        candidate_runs=len(ours),
    )


def moderated(groups: Sequence[Sequence[float]], prior: float) -> tuple[float, float]:
    """Pooled variance with a prior worth PRIOR_DF degrees of freedom, and all of these."""
    df = PRIOR_DF + sum(max(len(group) - 1, 0) for group in groups)
    total = PRIOR_DF * prior**2 + math.fsum(squares(group) for group in groups)
    return total / df, df


def stop_early(*arms: Arm) -> bool:
    """Whether full runs did different shares of their arm's planned steps, as far as recorded."""
    shares = [
        steps / arm.full_run_steps
        for arm in arms
        for run in finished(arm.full_runs)
        if arm.full_run_steps and (steps := steps_of(run))
    ]
    return bool(shares) and max(shares) > (1 + SAME_WORK) * min(shares)


def outside_seconds(arm: Arm, other: Arm) -> float:
    """F: mean seconds of a full run outside its steps; the other arm's, or 0, where unknown."""
    for compared in (arm, other):
        known = [
            max(run.wall_seconds - inside, 0.0)
            for run in finished(compared.full_runs)
            if run.wall_seconds and (inside := figure(run, "seconds"))
        ]
        if known:
            return mean(known)
    return 0.0


# Hours and price of runs and trials, as measured: hours x price of the whole cluster, USD.


def usd_per_run(arm: Arm, evidence: Evidence) -> float | None:
    """Price of a production run of this arm, None where hours or price are unknown."""
    hours = full_run_hours(arm, evidence)
    return None if hours is None or arm.usd_per_hour is None else hours * arm.usd_per_hour


def full_run_hours(arm: Arm, evidence: Evidence) -> float | None:
    """Hours of a production run: measured on full runs, else extrapolated from the blocks."""
    timed = walls(arm.full_runs)
    if not timed and arm is evidence.baseline:
        timed = list(evidence.history_wall_seconds)
    steady = evidence.segments[arm.name].values() if not timed else ()
    seconds = mean_or_none(timed or [s.full_run_seconds(arm.steps_or_one) for s in steady if s])
    return None if seconds is None else seconds / 3600


def trial_usd(evidence: Evidence) -> float | None:
    """What the trial cost so far: what the bill says, else segments and extra full runs.

    Runs that production made anyway cost the trial nothing. None where a price is unknown or
    an extra run that finished was not timed; what a crashed one took is not known and not counted.
    """
    if evidence.plan.spent_usd is not None:
        return evidence.plan.spent_usd
    total = 0.0
    for arm in evidence.arms:
        extra = [run for run in arm.quality if run.mode == SHADOW]
        if arm.usd_per_hour is None or any(not r.wall_seconds for r in extra if r.finished):
            return None
        seconds = math.fsum(run.wall_seconds or 0.0 for run in extra)
        seconds += math.fsum(math.fsum(run.step_seconds) for run in arm.speed)
        total += seconds / 3600 * arm.usd_per_hour
    return total


# Whether whole jobs confirm what the short blocks showed, before a promotion.
#
# Asked of the one estimate of whole jobs, r the candidate's price per hour over the
# baseline's, each on its own:
#
# - measured: every finished full run was timed
# - plausible: the full runs are not faster than the blocks leave possible
# - the estimate reaches min_proven_speedup x r
# - its one-sided bound at alpha/K exceeds min_proven_speedup x r
# - its interval, mapped to money, excludes a loss: the lower end exceeds r
#
# ``disproved``: no more runs would help. The estimate lies below the bar by more than three
# standard errors' chance; or a cheaper cluster, which may be slower than the bar, takes longer than
# today by so much.


class Agreement(StrEnum):
    """What whole jobs say of a candidate whose blocks were fast enough."""

    CONFIRMED = "confirmed"
    UNMEASURED = "unmeasured"
    IMPLAUSIBLE = "implausible"
    BELOW = "below"
    UNPROVEN = "unproven"
    MAY_LOSE = "may_lose"


@dataclass(frozen=True)
class Confirmation:
    """The answer; ``bar`` is the ratio that has to be exceeded, ``bound`` the one proven."""

    agreement: Agreement
    disproved: bool
    bar: float
    bound: float | None


def confirm(candidate: Arm, evidence: Evidence, whole: WholeJob | None) -> Confirmation:
    """Whether the estimate of whole jobs allows a promotion."""
    cost, policy = log_price_ratio(candidate, evidence), evidence.policy
    bar = math.log(policy.min_proven_speedup) + cost
    timed = all(run.wall_seconds for run in finished(candidate.quality))
    if whole is None or whole.measured is None or not timed:
        return Confirmation(Agreement.UNMEASURED, False, math.exp(bar), None)
    best = whole.upper(BEYOND_DOUBT)
    disproved = best < bar or (cost < 0 and best < 0)
    bound = whole.bound(policy.alpha / len(evidence.candidates))
    objections = {
        Agreement.IMPLAUSIBLE: whole.implausible,
        Agreement.BELOW: whole.log < bar or disproved,
        Agreement.MAY_LOSE: whole.bound(whole.level / 2) <= cost,
        Agreement.UNPROVEN: bound <= bar,
    }
    agreement = next((one for one, holds in objections.items() if holds), Agreement.CONFIRMED)
    return Confirmation(agreement, disproved, math.exp(bar), math.exp(bound))
