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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from operator import add, mul
from statistics import NormalDist

from compilegate.domain.arithmetic import normal_below
from compilegate.domain.decision import SHADOW, EvaluationFinding, EvaluationSplit, LargerEvaluation
from compilegate.domain.formats import money
from compilegate.domain.judging.comparison import samples_of
from compilegate.domain.judging.design import LIKELY, MOST_RUNS, Design, runs_for_one_look
from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.outcomes import Outcomes
from compilegate.domain.judging.quality import QualityFinding, QualityOutcome, design_of
from compilegate.domain.judging.whole_job import usd_per_run
from compilegate.domain.optional import without_none
from compilegate.domain.reasons import Reason

# Limits of a range in which sigma_D lies with 80 %: the normal quantile of 90 %.
NORMAL_90 = 1.2816
# Where the approximation of a chi-squared distribution by a cubed normal one is no longer good.
FAR_BELOW = -2.5


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

    def at(self, examples: float, *, at_best: bool = False) -> float:
        """sigma(N'): the spread on so many outcomes; ``at_best``, were sigma_D at its lower end."""
        training = self.training_range[0] if at_best else self.expected_training_sd
        return math.sqrt(training**2 + self.tau_squared / examples)

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
    z = NormalDist().inv_cdf(normal_below(cut) / 2)
    return max(least, measured * df_over_chi_squared(df, z))


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
    bits = without_none(run.bits for run in runs)
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
    for bit in bits:
        carry = bit
        for place, digit in enumerate(digits):
            digits[place], carry = digit ^ carry, digit & carry
        if carry:
            digits.append(carry)
    places = list(enumerate(digits))
    return sum((a & b).bit_count() << (i + j) for i, a in places for j, b in places)


# The split of the spread that a candidate's quality gate has to overcome, from the evidence.
#
# Both arms' runs, scored on one set, give tau^2 (above); s^2 is the spread that the
# gate itself pools over history, baseline and candidate.

# Below this the spread is too uncertain to say what makes it: at 3 its 80 % interval is 0.7 to 2.3
# times the estimate.
LEAST_DF = 3
# A metric is intercept + slope x the mean outcome: a share or percentage of right or wrong
# examples, or a mean loss. Scripts round metrics to four digits.
LINES = ((0.0, 1.0), (0.0, 100.0), (1.0, -1.0), (100.0, -100.0))
ROUNDED = 2e-4


class Finding(StrEnum):
    """What is known of the evaluation's part, in the decision document."""

    MORE_EXAMPLES = "more_examples"
    NOT_EXAMPLES = "not_examples"
    UNCLEAR = "unclear"
    TOO_FEW_RUNS = "too_few_runs"
    SETS_VARY = "sets_vary"
    OTHER_METRIC = "other_metric"


def split_of(candidate: Arm, evidence: Evidence) -> Split | Finding | None:
    """The split, why there is none, or None where no run recorded outcomes."""
    arms = [finished(arm.quality) for arm in (evidence.baseline, candidate)]
    read = [[(run, outcomes) for run in runs if (outcomes := run.outcomes)] for runs in arms]
    known = [pair for pairs in read for pair in pairs]
    if not known:
        return None
    if len({outcomes.population for _, outcomes in known}) > 1:
        return Finding.SETS_VARY
    slope = _slope([(run.metric or 0.0, outcomes.mean) for run, outcomes in known])
    if slope is None:
        return Finding.OTHER_METRIC
    tau = tau_squared([[outcomes for _, outcomes in pairs] for pairs in read])
    samples = samples_of(candidate, evidence)
    variance, df = samples.pooled_variance, samples.degrees_of_freedom
    if tau is None or not variance or df < LEAST_DF:
        return Finding.TOO_FEW_RUNS
    first = known[0][1]
    return Split(math.sqrt(variance), df, first.examples, slope**2 * tau, first.per_outcome)


def _slope(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Of the line on which every (metric, mean outcome) lies; None where there is none."""
    for intercept, slope in LINES:
        if all(
            math.isclose(metric, intercept + slope * mean, rel_tol=ROUNDED, abs_tol=ROUNDED**2)
            for metric, mean in pairs
        ):
            return slope
    return None


# Whether more evaluation examples would save full runs, for one candidate's open proof.
#
# The spread that the quality gate has to overcome is split (above). An evaluation takes
# minutes and a run hours, so examples are the cheaper way to a smaller spread, where they are a way
# at all. This only advises: no gate reads it.

# Sizes of a larger set that are considered, in today's; the first that is worth it is named.
FACTORS = (2, 4, 8, 16, 32, 64)
# Examples help where they spare this share of the candidate's runs: less is within the error of
# the split.
WORTH = 0.5

# Outcomes of the gate in which a smaller spread would help.
OPEN_PROOF = (
    QualityOutcome.MORE_RUNS, QualityOutcome.UNDERPOWERED, QualityOutcome.INCONCLUSIVE,
)  # fmt: skip


@dataclass(frozen=True)
class Purchase:
    """A set of ``examples`` outcomes: the spread on it and the runs of each arm it would take."""

    examples: int
    sd: float
    runs: int | None


@dataclass(frozen=True)
class Evaluation:
    """The split, today's runs, what larger sets would bring, and the one that is worth it."""

    finding: Finding
    split: Split | None = None
    today: Purchase | None = None
    larger: tuple[Purchase, ...] = ()
    best: Purchase | None = None
    wanted: int | None = None
    usd_saved: float | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def fewer_runs(self) -> int | None:
        """Runs of each arm that the set worth it spares; None where either takes too many."""
        today, best = (one.runs if one else None for one in (self.today, self.best))
        return None if today is None or best is None else today - best

    @property
    def figures(self) -> EvaluationFinding:
        """As the decision has it."""
        split, best = self.split, self.best
        if split is None or self.today is None:
            return EvaluationFinding(self.finding)
        low, high = (end if math.isfinite(end) else None for end in split.training_range)
        return EvaluationSplit(
            finding=self.finding,
            examples=split.examples * split.per_outcome,
            spread=split.sd,
            spread_of_evaluation=split.evaluation_sd,
            spread_of_training=split.training_sd,
            spread_of_training_interval=(low, high),
            spread_of_training_expected=split.expected_training_sd,
            runs_needed=self.today.runs,
            wanted_examples=self.wanted and self.wanted * split.per_outcome,
            best_examples=best.examples * split.per_outcome if best else None,
            runs_saved=self.fewer_runs,
            usd_saved=self.usd_saved,
            larger=tuple(
                LargerEvaluation(one.examples * split.per_outcome, one.sd, one.runs)
                for one in self.larger
            ),
        )


def evaluation_of(quality: QualityFinding, candidate: Arm, evidence: Evidence) -> Evaluation | None:
    """What the evaluation adds to the spread; None where no run recorded outcomes."""
    design, split = design_of(evidence, candidate), split_of(candidate, evidence)
    if design is None or split is None:
        return None
    if isinstance(split, Finding):
        return Evaluation(split)
    # Past runs were scored on today's set: they are no reference for metrics on another.
    evaluation = weighed(split, design, replace(design, history=0), evidence.quality.margin)
    saved = _usd_saved(evaluation.fewer_runs, candidate, evidence)
    evaluation = replace(evaluation, usd_saved=saved)
    if quality.outcome not in OPEN_PROOF:
        return evaluation
    return replace(evaluation, reasons=tuple(_reasons(evaluation, split, candidate.name)))


def weighed(split: Split, design: Design, anew: Design, margin: float) -> Evaluation:
    """Today's runs against those that larger sets would take, by their own design."""
    today, larger, best = _offers(split, design, anew, margin)
    finding = Finding.MORE_EXAMPLES if best else Finding.NOT_EXAMPLES
    if best is None and _offers(split, design, anew, margin, at_best=True)[-1]:
        finding = Finding.UNCLEAR
    wanted = split.wanted(margin / anew.best_margin(LIKELY))
    return Evaluation(finding, split, today, larger, best, wanted)


def _offers(
    split: Split, design: Design, anew: Design, margin: float, *, at_best: bool = False
) -> tuple[Purchase, tuple[Purchase, ...], Purchase | None]:
    """Today's set, the larger ones, and the smallest of them that is worth it.

    Worth it is what can prove the margin with at most half of the runs that today's set takes.
    """

    def purchase(examples: int, by: Design) -> Purchase:
        sd = split.at(examples, at_best=at_best)
        runs = runs_for_one_look(sd / margin, history=by.history, level=by.level)
        return Purchase(examples, sd, runs)

    today = purchase(split.examples, design)
    larger = tuple(purchase(factor * split.examples, anew) for factor in FACTORS)
    most = math.inf if today.runs is None else WORTH * today.runs
    worth_it = (
        one
        for one in larger
        if one.runs is not None
        and one.runs <= most
        and anew.runs_needed(one.sd / margin) is not None
    )
    return today, larger, next(worth_it, None)


def _usd_saved(fewer: int | None, candidate: Arm, evidence: Evidence) -> float | None:
    """Price of the runs spared; of those that production makes, what the candidate saves on them.

    An extra run of the candidate has one of the baseline beside it. Production promotes earlier by
    as many runs of the baseline. None where a price is unknown.
    """
    ours, theirs = usd_per_run(candidate, evidence), usd_per_run(evidence.baseline, evidence)
    if fewer is None or ours is None or theirs is None:
        return None
    each = theirs + ours if evidence.policy.quality_runs == SHADOW else theirs - ours
    return max(0.0, fewer * each)


def _reasons(evaluation: Evaluation, split: Split, candidate: str) -> Iterator[Reason]:
    """What to say of an open proof; the spread is the one that larger sets are reckoned with."""
    best, today, training = evaluation.best, evaluation.today, split.expected_training_sd
    count, sd = split.examples * split.per_outcome, f"{split.at(split.examples):.2g}"
    added, usd = f"{split.evaluation_sd:.2g}", evaluation.usd_saved
    if best and today:
        instead = f"more than {MOST_RUNS}" if today.runs is None else str(today.runs)
        text = (
            f"{candidate}: {added} of the spread {sd} comes from your {count:,} evaluation "
            f"examples; {best.examples * split.per_outcome:,} would need about {best.runs} "
            f"runs instead of {instead}" + (f", worth {money(usd)}" if usd else "")
        )
        yield Reason("evaluation_limited", text, candidate)
    elif evaluation.finding is Finding.NOT_EXAMPLES and split.evaluation_sd <= training:
        text = (
            f"{candidate}: more evaluation examples would not help much: {training:.2g} of the "
            f"spread {sd} is training itself, your {count:,} examples add {added}"
        )
        yield Reason("evaluation_sufficient", text, candidate)
