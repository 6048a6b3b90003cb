"""The quality gate: group-sequential non-inferiority over full runs.

At look n (statistics.py) the candidate passes when a loss of the margin or more is ruled out,
P(T_df > (D + m)/se) <= a(n) (one side of Schuirmann 1987), and fails when a loss is proven,
P(T_df > -D/se) <= a(n), of half a margin or more: a smaller one is within what the team
accepts. Between looks it can only be given up: on a loss beyond any doubt, or
when what is still to come would hardly prove the margin (conditional power at the current
trend, Lan and Wittes 1988). Giving up takes promotions away and so costs no error.

A look is one test. Its samples follow from the order of runs alone (statistics.Samples,
ComparedRuns) and stay the same however often the judge is called and whatever comes later, so
that K candidates spend at most K times the sum of what their looks may spend. A look whose
candidate runs are there waits for its baseline runs: half as many of the same weeks.

What the gate may use is fixed by policy before any run: how many runs, of which mode. What it
proves, whole jobs have to confirm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from compilegate.domain.arithmetic import normal_below
from compilegate.domain.decision import EvaluationFinding, IdenticalRuns, Interval, QualityFigures
from compilegate.domain.judging import statistics
from compilegate.domain.judging.equivalence import equivalence_figures, rho_of
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, finished, metrics
from compilegate.domain.judging.figures import difference_figures
from compilegate.domain.judging.statistics import (
    LIKELY,
    Comparison,
    Design,
    Samples,
    baseline_needed,
    compare,
    design_for,
    look_at,
    looks,
    runs_for_one_look,
    spent,
)
from compilegate.domain.reasons import Reason

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


# Proof by identity: runs of both arms that end with exactly the same weights.
#
# Where a candidate's run ends with the very weights of the baseline's run of the same seed, data
# and initial weights, the change has changed nothing: both trained one model, and its quality is
# equal without statistics. Unequal weights mean nothing, since the smallest rounding becomes
# another model within some hundred steps.
#
# What counts is drawn narrowly. A pair is two finished runs of different jobs, one of each arm, for
# which all of this is recorded and equal: seed, data, initial weights, and the fingerprint of every
# final weight and buffer (``final_weights_sha256``). It is *identical* where the metric is equal as
# well (the same weights scored otherwise would say that the score depends on more) and the weights
# have trained (``final_start_sha256`` differs from the initial one, so that a model which was never
# updated proves nothing). Quality is proven by
#
#     IDENTICAL_PAIRS pairs that end in different weights, and no pair that is not identical.
#
# One pair could come of a script whose seed does not reach the weights. More would add little: a
# change that altered a share q of the T steps would leave one run of them as it was with a chance
# of (1 - q)^T, so two pairs of 600 steps bound q by 1 - 0.05^(1/1200) = 0.25 % with 95 %
# confidence. A candidate of which some pairs are unequal is judged by statistics alone, as is a run
# without a partner; a loss that statistics prove is a loss. Speed is proven as of every candidate.

IDENTICAL_PAIRS = 2
# The same number, written and read again.
SAME_METRIC = 1e-12


@dataclass(frozen=True)
class Identity:
    """``models`` are the different final weights of identical pairs; other pairs are ``unequal``.

    ``seeds`` are those of the identical pairs.
    """

    models: int = 0
    unequal: int = 0
    seeds: tuple[int, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether it proves that the candidate trains what the baseline does."""
        return self.models >= IDENTICAL_PAIRS and not self.unequal

    @property
    def words(self) -> str:
        """What was seen, for people."""
        seeds = ", ".join(map(str, self.seeds))
        return (
            f"{self.models} runs ended with exactly the weights of the baseline's runs of the same "
            f"seed ({seeds}): they trained the same models"
        )


def identity_of(candidate: Arm, baseline: Arm) -> Identity | None:
    """What the final weights of both arms' full runs say, None where no two runs are a pair."""
    same: dict[str | None, int] = {}
    unequal = 0
    for run in finished(candidate.quality):
        for other in finished(baseline.quality):
            if run.seed is None or not _is_pair(run, other):
                continue
            if _identical(run, other):
                same[run.final_weights] = run.seed
            else:
                unequal += 1
    if not same and not unequal:
        return None
    return Identity(len(same), unequal, tuple(sorted(set(same.values()))))


def _is_pair(run: FullRun, other: FullRun) -> bool:
    """Whether they are of two jobs, and all that two runs must share is recorded and equal."""
    draw, its = ((one.seed, one.data, one.initial_weights) for one in (run, other))
    recorded = run.data and run.initial_weights and run.final_weights and other.final_weights
    is_one_job = run.job and run.job == other.job
    return draw == its and bool(recorded) and not is_one_job


def _identical(ours: FullRun, theirs: FullRun) -> bool:
    if ours.metric is None or theirs.metric is None:
        return False
    both_trained = bool(ours.trained_weights and theirs.trained_weights)
    same_metric = math.isclose(ours.metric, theirs.metric, rel_tol=SAME_METRIC)
    return ours.final_weights == theirs.final_weights and same_metric and both_trained


# A loss as unlikely as this by chance ends the arm at any number of runs.
BEYOND_DOUBT = 0.002
DOUBT_DF = 3
# Give up where the last look would pass with less than this chance.
FUTILE = 0.15
# A history this long measures the spread well enough to refuse an underpowered trial.
ENOUGH_HISTORY = 5
# Metrics that agree to this share are one result copied.
COPIED = 1e-12
# Give up on a candidate of whose runs as large a share only repeats a seed.
REPEATED_SHARE = 0.5


class QualityOutcome(StrEnum):
    """Outcomes of the quality gate for one candidate."""

    HELD = "held"
    WORSE = "worse"
    CRASHED = "crashed"
    MORE_RUNS = "more_runs"
    UNDERPOWERED = "underpowered"
    INCONCLUSIVE = "inconclusive"
    SEEDS_REPEATED = "seeds_repeated"


@dataclass(frozen=True)
class QualityFinding:
    """The comparison so far and what it means; ``level`` is what the last look may spend.

    ``lacks_baseline_only``: a look is reached but for baseline runs of the same weeks.
    """

    outcome: QualityOutcome
    reason: str
    comparison: Comparison | None = None
    look: int | None = None
    level: float | None = None
    provable_margin: float | None = None
    runs_needed: int | None = None
    lacks_baseline_only: bool = False
    identity: Identity | None = None

    @property
    def interval(self) -> Interval | None:
        """Difference with the look's own error on each side, so that it holds at every look."""
        if self.comparison is None or self.level is None:
            return None
        return self.comparison.interval(self.level)


def judge_quality(samples: Samples, margin: float, design: Design) -> QualityFinding:
    """Decide one candidate's quality; metrics higher is better, ``margin`` in their unit."""
    look, compared = look_reached(samples, design), compare(samples)
    if look is None:
        if compared and _beyond_doubt(compared, margin):
            return QualityFinding(QualityOutcome.WORSE, _worse_words(compared), compared)
        missing = QualityFinding(QualityOutcome.MORE_RUNS, "full runs are missing", compared)
        return underpowered(samples, margin, design) or missing
    # Runs past a look wait for the next one: looking in between would spend error unseen.
    looked = compare(samples.first(look))
    if looked is None or compared is None or samples.first(look).degrees_of_freedom < 2:
        return QualityFinding(
            QualityOutcome.MORE_RUNS, "too few runs to measure how much it varies"
        )
    if compared.spread < COPIED * max(margin, abs(samples.candidate[0])):
        reason = "every run gave exactly the same metric, so its variation is unknown"
        return QualityFinding(QualityOutcome.INCONCLUSIVE, reason)
    return _at_a_look(looked, compared, margin, design)


def look_reached(samples: Samples, design: Design) -> int | None:
    """The last look whose runs of both arms are there, None before the first."""
    there = [n for n in looks(design.n_max) if samples.baseline_at(n) is not None]
    return max(there, default=None)


def _beyond_doubt(compared: Comparison, margin: float) -> bool:
    if compared.df < DOUBT_DF or compared.spread == 0 or compared.difference > -margin / 2:
        return False
    return compared.p_worse <= BEYOND_DOUBT


def underpowered(samples: Samples, margin: float, design: Design) -> QualityFinding | None:
    """The refusal of a trial that could hardly prove the margin; None where it could."""
    spread = math.sqrt(samples.pooled_variance or 0.0)
    if len(samples.history) < ENOUGH_HISTORY or spread == 0:
        return None
    if design.runs_needed(spread / margin, design.least_chance) is not None:
        return None
    provable = design.best_margin(LIKELY) * spread
    return QualityFinding(
        QualityOutcome.UNDERPOWERED,
        f"the metric varies by {spread:.4g} from run to run; {design.n_max} runs could prove a "
        f"margin of {provable:.4g}, not {margin:g}",
        provable_margin=provable,
    )


def _at_a_look(
    looked: Comparison, compared: Comparison, margin: float, design: Design
) -> QualityFinding:
    look = looked.runs
    level = spent(look, design.n_max, design.level)
    lost = looked.p_worse <= spent(look, design.n_max, design.error)
    lost = lost and looked.difference <= -margin / 2
    if looked.p_inferior(margin) <= level:
        outcome, seen = QualityOutcome.HELD, looked
        reason = f"a loss of {margin:g} or more is ruled out"
    elif lost or _beyond_doubt(compared, margin):
        outcome, reason, seen = QualityOutcome.WORSE, _worse_words(compared), compared
    elif look == design.n_max or chance_of_passing(compared, margin, design) < FUTILE:
        outcome, seen = QualityOutcome.INCONCLUSIVE, compared
        reason = (
            f"the metric varies by {compared.spread:.4g} from run to run; up to {design.n_max} "
            f"runs could prove a margin of {design.best_margin(LIKELY) * compared.spread:.4g}, "
            f"not {margin:g} at a difference of {compared.difference:.4g}"
        )
    else:
        outcome, seen = QualityOutcome.MORE_RUNS, looked
        reason = f"{look} runs are not conclusive yet"
    return QualityFinding(
        outcome,
        reason,
        seen,
        look,
        level,
        design.provable_margin(max(seen.runs, 2)) * seen.spread,
        runs_for_one_look(compared.spread / margin, history=design.history, level=design.level),
    )


def chance_of_passing(compared: Comparison, margin: float, design: Design) -> float:
    """Conditional power at the last look: Phi((D n/n_max + m)/(s sqrt(v_max)) - t_{1-a}).

    The trend D is shrunk towards no loss by the share of runs that it rests on.
    """
    last = design.n_max
    reference = max(compared.reference_runs, last)
    drift = compared.difference * min(1.0, compared.runs / last) + margin
    bar = statistics.quantile(
        1 - spent(last, last, design.level), compared.df + 2 * (last - compared.runs)
    )
    return normal_below(drift / compared.error_at(last, reference) - bar)


def _worse_words(compared: Comparison) -> str:
    return f"significantly worse by {-compared.difference:.4g}"


def design_of(evidence: Evidence, candidate: Arm | None = None) -> Design | None:
    """What the quality gate of a candidate may use, None if not even two runs are left.

    The design is fixed by the runs that were left when the candidate's own first full run was
    made: what others have used up cannot serve its proof. Before that, by those left now. Without
    a candidate it is that of the one which may use most.
    """
    asked = [candidate] if candidate else evidence.candidates
    return design_for(
        evidence.policy,
        history=len(evidence.quality.history),
        candidates=len(evidence.candidates),
        runs_remaining=evidence.runs_left(candidate),
        rho=min(rho_of(arm, evidence) for arm in asked),
    )


def first_runs(evidence: Evidence) -> int:
    """One run against a long history can already prove a large loss; else a spread needs two."""
    return 1 if len(evidence.quality.history) >= ENOUGH_HISTORY else 2


def refuse_before_spending(evidence: Evidence, design: Design) -> Reason | None:
    """Why no number of runs that policy allows would prove the margin, by history alone."""
    history = Samples((), (), evidence.oriented(evidence.quality.history))
    refusal = underpowered(history, evidence.quality.margin, design)
    if refusal is None:
        return None
    return Reason("underpowered", f"{evidence.quality.metric}: {refusal.reason}")


def judge_full_runs(candidate: Arm, evidence: Evidence, design: Design) -> QualityFinding:
    """Decide one candidate on its full runs."""
    baseline = evidence.baseline
    if any(not run.finished for run in candidate.quality):
        return QualityFinding(QualityOutcome.CRASHED, "a full run crashed or diverged")
    failures = sum(not run.finished for run in baseline.quality)
    if failures >= 2 and failures > len(finished(baseline.quality)):
        reason = f"{failures} full runs of the baseline failed: nothing to compare with"
        return QualityFinding(QualityOutcome.INCONCLUSIVE, reason)
    samples = samples_of(candidate, evidence)
    finding = judge_quality(samples, evidence.quality.margin, design)
    if finding.outcome is not QualityOutcome.MORE_RUNS:
        return finding
    asked = {
        candidate.name: finished(candidate.quality),
        # Production's own runs may repeat a seed.
        baseline.name: [run for run in finished(baseline.quality) if run.mode != "production"],
    }
    repeating = [name for name, runs in asked.items() if _repeats_seeds(runs)]
    if repeating:
        reason = f"runs of {' and '.join(repeating)} repeat a seed on the same data"
        return replace(finding, outcome=QualityOutcome.SEEDS_REPEATED, reason=reason)
    due = look_at(len(samples.candidate), design.n_max)
    if due is None or samples.baseline_at(due) is not None:
        return finding
    reason = f"of {baseline_needed(due)} baseline runs of the same weeks "
    reason += f"that the look at {due} needs, {len(samples.baseline)} are there"
    return replace(finding, reason=reason, lacks_baseline_only=True)


def _repeats_seeds(runs: Sequence[FullRun]) -> bool:
    repeated = len(runs) - len(replicates(runs))
    return repeated > 0 and repeated >= REPEATED_SHARE * len(runs)


# What the gate has settled stays settled.
DECIDED = frozenset({QualityOutcome.HELD, QualityOutcome.WORSE, QualityOutcome.CRASHED})


def judge_quality_of(arm: Arm, evidence: Evidence, design: Design) -> QualityFinding:
    """The gate's finding, or that quality is held where identity proves what it leaves open."""
    identity = identity_of(arm, evidence.baseline)
    finding = replace(judge_full_runs(arm, evidence, design), identity=identity)
    if identity is None or not identity.proven or finding.outcome in DECIDED:
        return finding
    return replace(
        finding,
        outcome=QualityOutcome.HELD,
        reason="both arms trained the same models, so a loss is ruled out",
        # No look decided: an interval would be that of a question which is no longer asked.
        look=None,
        level=None,
        lacks_baseline_only=False,
    )


def quality_figures(
    finding: QualityFinding,
    evidence: Evidence,
    candidate: Arm,
    evaluation: EvaluationFinding | None,
) -> QualityFigures:
    """As the decision has it; where weights alone decide, the difference is nought."""
    design = design_of(evidence, candidate)
    figures = replace(
        difference_figures(
            finding.comparison, evidence, candidate.quality, evidence.baseline.quality
        ),
        interval=finding.interval,
        confidence=1 - 2 * finding.level if finding.level else None,
        look=finding.look,
        provable_margin=finding.provable_margin,
        runs_needed=finding.runs_needed,
        evaluation=evaluation,
        equivalence=equivalence_figures(candidate, evidence, design.level) if design else None,
    )
    seen = finding.identity
    if seen is None:
        return figures
    alone = seen.proven and finding.level is None
    return replace(
        figures,
        estimate=0.0 if alone else figures.estimate,
        identical=IdenticalRuns(seen.models, seen.unequal, seen.proven),
    )
