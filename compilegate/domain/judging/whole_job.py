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
s_0 of blocks is speed.assumed_spread, s_0 of walls 8 % (Sinha et al. 2022, arXiv 2208.11035), or
what the trial's plan has learned (spreads.py). What was learned may mislead: where the trial's own
runs vary more, they count alone, with s^2 = SS / nu and nu degrees of freedom. Earlier runs then
say nothing of where walls stand. A learned spread may prove much with few runs, so that a promotion
by one is asked for at the quality gate's looks alone, and each may spend its share (design.spent)
of alpha/K, and of the interval's error for the loss of money.

Pairs. Where the plan says so (planning/plan.py), a job j makes whole runs in the order B C C B,
the next one C B B C, on one node, which cancels in each ratio, as an even drift does in their mean:

    D_j = mean of its two ln(T_B / T_C)    D = mean(D_j)    v_D = s_D^2 / jobs

s_D is moderated by the prior of blocks, and the larger of two: of the D_j, which differ if a node
favours an arm, and of these and how far a job's pairs are apart, which shows a change within it.

Disagreement. A prediction misses by a random effect N(0, tau^2), for recompilations that no
block saw and whatever else differs between a short and a whole job. One disagreement of two
sources measures tau poorly, so it is never below a prior scale tau_0, and above it what the
sources show (DerSimonian and Laird 1986 for two sources):

    tau^2 = max{tau_0^2, (P - D)^2 - v_P - v_D}

tau_0 = UNSEEN_SD: by calibration on the simulated fleet (benchmarks/decision), where late
recompilations lie log-uniform over the run. A learned one is never below LEAST_UNSEEN: over 16
public pairs, blocks were off by 0.95 % (root mean square).

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
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
from compilegate.domain.economics import AtLength, at_length
from compilegate.domain.judging.design import design_for, looks, spent
from compilegate.domain.judging.drift import KAPPA, allowed_drift, history_weight
from compilegate.domain.judging.evidence import (
    Arm,
    Evidence,
    finished,
    mean_or_none,
    runs_apart,
    walls,
)
from compilegate.domain.judging.run_work import (
    SAME_WORK,
    ComparableWalls,
    figure,
    steps_of,
    timed,
)
from compilegate.domain.judging.speed import (
    SpeedFinding,
    assumed_spread,
    block_log_speedups,
    log_price_ratio,
)
from compilegate.domain.judging.student import CONFIDENCE, quantile
from compilegate.domain.judging.target import log_times_to_target, target_problem, timed_to_target
from compilegate.domain.reasons import Reason
from compilegate.domain.spreads import (
    COPIES,
    NOTHING,
    PRIOR_DF,
    UNSEEN_SD,
    WALL_SD,
    Measured,
    Sample,
    Spread,
    Spreads,
    in_minutes,
    sample_of,
)

LEAST_UNSEEN = 0.01
# Pairs of whole runs that a job makes, where one makes both arms'. They are said to be apart by
# three of the standard deviations that a difference has where their mean has one.
PAIRS, CHANGED = 2, 6.0
# Runs that vary by as much more than before are said to.
CALM = 2.0
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
    def spread(self) -> float:
        """Of one run."""
        return math.sqrt(self.variance / (1 / self.baseline_runs + 1 / self.candidate_runs))

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
    runs are beyond doubt faster than the blocks leave possible. ``wall_prior`` and
    ``least_disagreement`` are s_0 of walls and tau_0, ``target`` as ``Speedup`` has it.
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
    wall_prior: float = WALL_SD
    least_disagreement: float = UNSEEN_SD
    target: float | None = None

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
            target=self.target,
        )


def estimate_whole_job(candidate: Arm, evidence: Evidence) -> WholeJob | None:
    """The estimate from what there is; None before the first block and full run."""
    to_target = timed_to_target(candidate, evidence)
    outside = (
        outside_seconds(evidence.baseline, candidate),
        outside_seconds(candidate, evidence.baseline),
    )
    logs = block_log_speedups(candidate, evidence, outside=outside)
    calm = block_log_speedups(candidate, evidence, outside=outside, calm=True)
    paired = None if to_target else _paired(candidate, evidence)
    prior, learned = _block_prior(candidate, evidence)
    predicted, measured = None, paired or _measured(candidate, evidence)
    if logs and not to_target:
        variance, df = moderated([logs], prior, learned=learned)
        predicted = Source(mean(logs), variance / len(logs), df, len(logs), len(logs))
    unseen, walls = evidence.plan.spreads.unseen, learned_walls(candidate, evidence)
    of_walls = walls.sd if walls else WALL_SD
    least = max(unseen.sd, LEAST_UNSEEN) if unseen else UNSEEN_SD
    tau, implausible = least, False
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
        wall_prior=prior if paired else of_walls,
        least_disagreement=least,
        target=evidence.quality.target if to_target else None,
    )


def _implausible(predicted: Source, measured: Source, *, most: float) -> bool:
    """Whether full runs are beyond doubt above TOO_FAST times the most that blocks predict."""
    spread = math.sqrt(predicted.variance + UNSEEN_SD**2 + measured.variance)
    doubt = quantile(1 - BEYOND_DOUBT, min(predicted.df, measured.df)) * spread
    return measured.log > most + math.log(TOO_FAST) + doubt


def _block_prior(candidate: Arm, evidence: Evidence) -> tuple[float, bool]:
    """The spread of arms that share a node, and whether it was learned."""
    block = evidence.plan.spreads.block
    if block is None or runs_apart(candidate, evidence.baseline):
        return assumed_spread(candidate, evidence), False
    return block.sd, True


def _measured(candidate: Arm, evidence: Evidence) -> Source | None:
    """By times to the target, or wall clocks at equal steps, where other work counts nothing."""
    baseline, to_target = evidence.baseline, timed_to_target(candidate, evidence)
    log_times = log_times_to_target if to_target else _log_walls
    ours, today = log_times(candidate, evidence), log_times(baseline, evidence)
    earlier: Sequence[float] = list(map(math.log, evidence.history_wall_seconds))
    if evidence.quality.early_stopping and stop_early(candidate, baseline):
        earlier = ()  # their steps are not known
    learned = None if to_target else learned_walls(candidate, evidence)
    if learned or to_target:
        earlier = ()
    if not ours or not (today or earlier) or target_problem(candidate, evidence):
        return None
    prior = learned.sd if learned else WALL_SD
    variance, df = moderated([ours, today, earlier], prior, learned=bool(learned) or to_target)
    if allowed_drift(earlier, today, variance) > KAPPA:  # today's runs contradict them
        earlier = ()
    weight = history_weight(len(earlier))
    total = weight * mean(earlier) if earlier else 0.0
    reference = (total + math.fsum(today)) / (weight + len(today))
    error = variance * (1 / len(ours) + 1 / (weight + len(today)))
    if to_target:  # each arm may vary by its own
        own = [squares(logs) / (len(logs) - 1) / len(logs) for logs in (ours, today)]
        error, df = max(error, math.fsum(own)), min(len(ours), len(today)) - 1
    return Source(
        log=reference - mean(ours),
        variance=error,
        df=df,
        baseline_runs=len(earlier) + len(today),
        candidate_runs=len(ours),
    )


def _pairs(candidate: Arm, evidence: Evidence) -> Mapping[object, list[float]]:
    """ln(speed-up) of both pairs of each job that made two whole runs of each arm."""
    ours, today = _by_job(candidate, evidence), _by_job(evidence.baseline, evidence)
    return {
        job: [base - mine for base, mine in zip(today[job], own, strict=True)]
        for job, own in ours.items()
        if len(own) == len(today.get(job, ())) == PAIRS
    }


def _paired(candidate: Arm, evidence: Evidence) -> Source | None:
    """By these pairs; None without any."""
    pairs = _pairs(candidate, evidence).values()
    if not pairs:
        return None
    jobs = [mean(pair) for pair in pairs]
    # Half of a job's squared deviations: those of the mean of its pairs.
    apart = [[log / math.sqrt(PAIRS) for log in pair] for pair in pairs]
    prior, _ = _block_prior(candidate, evidence)
    variance, df = max(moderated(some, prior, learned=True) for some in ([jobs], [jobs, *apart]))
    runs = PAIRS * len(jobs)
    return Source(mean(jobs), variance / len(jobs), df, runs, runs)


def _by_job(arm: Arm, evidence: Evidence) -> Mapping[object, list[float]]:
    """ln(wall clock) of the runs that can be compared, by the job that made them in pairs."""
    walls, logs = ComparableWalls(arm, evidence), defaultdict[object, list[float]](list)
    for place, run in enumerate(finished(arm.full_runs)):
        if seconds := walls.seconds(run):
            own = run.job if evidence.plan.pairs else ""
            logs[own or place].append(math.log(seconds))
    return logs


def _log_walls(arm: Arm, evidence: Evidence) -> list[float]:
    """Of each job: its runs shared a node and a day."""
    return [mean(own) for own in _by_job(arm, evidence).values()]


def measured_spreads(candidate: Arm, evidence: Evidence, instance_type: str) -> Measured:
    """What a trial has shown of spreads, without any prior: later trials learn from it."""
    ours, today = _log_walls(candidate, evidence), _log_walls(evidence.baseline, evidence)
    apart = runs_apart(candidate, evidence.baseline)
    logs = [] if apart else block_log_speedups(candidate, evidence)
    block = sample_of(logs)
    walls = NOTHING if _in_minutes(candidate, evidence) else sample_of(ours) + sample_of(today)
    unseen = NOTHING
    if ours and today and walls.df and block.df:
        variance = walls.sd**2 * (1 / len(ours) + 1 / len(today))
        off = mean(logs) - mean(today) + mean(ours)
        if paired := _paired(candidate, evidence):
            variance, off = paired.variance, mean(logs) - paired.log
        unseen = Sample(max(off**2 - (variance + block.sd**2 / len(logs)), 0.0), 1.0, 1)
    return Measured(instance_type, walls, block, unseen)


def learned_walls(candidate: Arm, evidence: Evidence) -> Spread | None:
    """The learned spread of whole jobs; None where walls of the trial are whole minutes."""
    minutes = _in_minutes(candidate, evidence)
    return None if minutes else evidence.plan.spreads.whole_job


def spread_reasons(candidate: Arm, evidence: Evidence, whole: WholeJob | None) -> Iterator[Reason]:
    """Where the spreads are from, and what of the walls could not be used."""
    if timed_to_target(candidate, evidence):
        return
    spreads, measured = evidence.plan.spreads, whole.measured if whole else None
    walls = learned_walls(candidate, evidence)
    own = measured.spread if measured else 0.0
    if spreads != Spreads(left_out=spreads.left_out):
        text = f"before this trial: {spreads.words}"
        if walls and own > CALM * walls.sd:
            text += f". Its own whole jobs vary by {100 * own:.2g} % and count alone"
        yield Reason("spreads_learned", text)
    if evidence.plan.pairs and measured:
        runs, (prior, _) = measured.candidate_runs, _block_prior(candidate, evidence)
        text = f"{runs} whole runs of each arm, {PAIRS} of each in a job"
        text += f": a job's speed-up varies by {100 * own:.2g} %"
        pairs = _pairs(candidate, evidence).items()
        apart = [str(job) for job, (one, other) in pairs if abs(one - other) > CHANGED * prior]
        text += f". A node changed its pace within {', '.join(apart)}" if apart else ""
        yield Reason("paired_runs", text)
    if spreads.left_out or (spreads.whole_job and not walls):
        text = "walls are whole minutes" if spreads.left_out != COPIES else "walls are copies"
        yield Reason("walls_left_out", f"{text}, so that how much they vary is unknown")


def _in_minutes(candidate: Arm, evidence: Evidence) -> bool:
    runs = [*timed(candidate.full_runs), *timed(evidence.baseline.full_runs)]
    return in_minutes([run.wall_seconds or 0.0 for run in runs])


def moderated(
    groups: Sequence[Sequence[float]], prior: float, *, learned: bool = False
) -> tuple[float, float]:
    """Pooled variance with a prior worth PRIOR_DF degrees of freedom, and all of these.

    Groups that vary more than a ``learned`` prior and they together count alone.
    """
    own_df = sum(max(len(group) - 1, 0) for group in groups)
    own = math.fsum(squares(group) for group in groups)
    df, total = PRIOR_DF + own_df, PRIOR_DF * prior**2 + own
    if learned and own_df and own / own_df > total / df:
        return own / own_df, own_df
    return total / df, df


def from_steady_steps(
    seconds: float, logs: Sequence[float], prior: float, overhead_seconds: float
) -> AtLength:
    """What a run of ``seconds`` would gain (economics.at_length), from short runs side by side.

    ``logs`` are ln(steady step / the candidate's). The interval is Student's t on them, with
    ``prior`` as the prior of their spread (``moderated``).
    """
    variance, df = moderated([logs], prior)
    half = quantile(0.5 + CONFIDENCE / 2, df) * math.sqrt(variance / len(logs))
    low, middle, high = (math.exp(mean(logs) + shift) for shift in (-half, 0.0, half))
    return at_length(seconds, middle, (low, high), overhead_seconds)


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
# By a learned spread of whole jobs, or times to a target, both errors are shared by the looks. Of
# times to a target the lower end has to exceed the bar, too.
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
    """The answer; ``bar`` is the ratio that has to be exceeded, ``bound`` the one proven.

    ``share`` is that of the error which the bound may spend.
    """

    agreement: Agreement
    disproved: bool
    bar: float
    bound: float | None
    share: float = 1.0


def confirm(candidate: Arm, evidence: Evidence, whole: WholeJob | None) -> Confirmation:
    """Whether the estimate of whole jobs allows a promotion."""
    cost, policy = log_price_ratio(candidate, evidence), evidence.policy
    bar = math.log(policy.min_proven_speedup) + cost
    timed = all(run.wall_seconds for run in finished(candidate.quality))
    to_target = timed_to_target(candidate, evidence)
    if not (whole and whole.measured and timed):
        return Confirmation(Agreement.UNMEASURED, False, math.exp(bar), None)
    best = whole.upper(BEYOND_DOUBT)
    disproved = best < bar or (cost < 0 and best < 0)
    share = _share_of_error(candidate, evidence, whole.measured)
    errors = policy.alpha / len(evidence.candidates), whole.level / 2
    bound, end = (whole.bound(share * error) if share else -math.inf for error in errors)
    objections = {
        Agreement.IMPLAUSIBLE: whole.implausible,
        Agreement.BELOW: whole.log < bar or disproved,
        Agreement.MAY_LOSE: whole.bound(whole.level / 2) <= cost,
        Agreement.UNPROVEN: bound <= bar or end <= (bar if to_target else cost),
    }
    agreement = next((one for one, holds in objections.items() if holds), Agreement.CONFIRMED)
    return Confirmation(agreement, disproved, math.exp(bar), math.exp(bound), share)


def _share_of_error(candidate: Arm, evidence: Evidence, measured: Source) -> float:
    """What a promotion may spend now: by a learned spread, pairs, a target none between looks.

    The runs of a job in pairs reach a look together, the last or the one before it. One job shows
    nothing of nodes that favour an arm.
    """
    due = [len(finished(candidate.quality))]
    if evidence.plan.pairs:
        due = [n for n in (measured.candidate_runs, measured.candidate_runs - 1) if n > PAIRS]
    elif not (learned_walls(candidate, evidence) or timed_to_target(candidate, evidence)):
        return 1.0
    design = design_for(
        evidence.policy,
        history=0,
        candidates=len(evidence.candidates),
        runs_remaining=evidence.runs_left(candidate),
    )
    reached = [look for look in due if design and look in looks(design.n_max)]
    return spent(reached[0], design.n_max, 1.0) if design and reached else 0.0
