"""The quality gate: group-sequential non-inferiority over full runs.

With D the difference of mean metrics, se its standard error (comparison.py), m the margin, and
a(n) and a_0(n) what look n of n_max may spend of the levels a (design.py) and WORSE_LEVEL, it asks
at every look

    held     P(T_df > (D + m) / se) <= a(n)                        (one side of Schuirmann 1987)
    worse    P(T_df > -D / se) <= a_0(n) / G    and D <= -m/2
    futile   Phi((D n/n_max + m) / se_max - t_{1 - a(n_max)}) < 0.15    (Lan and Wittes 1988)

A loss of less than half a margin is within what the team accepts. Between looks a candidate can
only be given up, on a loss beyond any doubt or as futile. Giving up takes promotions away and so
costs no error.

A look is one test. Its samples follow from the order of runs alone and stay the same however often
the judge is called and whatever comes later, so that K candidates spend at most K times the sum of
what their looks may spend. A look whose candidate runs are there waits for its baseline runs: half
as many of the same weeks.

What the gate may use is fixed before any run of the candidate's: how many runs, of which mode, and
by the equivalence check its level. What it proves, whole jobs have to confirm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from compilegate.domain.arithmetic import normal_below
from compilegate.domain.decision import EvaluationFinding, IdenticalRuns, Interval, QualityFigures
from compilegate.domain.judging.comparison import (
    Comparison,
    Samples,
    baseline_needed,
    compare,
    replicates,
    samples_of,
)
from compilegate.domain.judging.design import (
    LIKELY,
    Design,
    design_for,
    look_at,
    looks,
    runs_for_one_look,
    spent,
)
from compilegate.domain.judging.equivalence import equivalence_figures, rho_of
from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.figures import difference_figures
from compilegate.domain.judging.identity import Identity, identity_of
from compilegate.domain.judging.student import quantile
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.quality import Metric

# What the looks may spend on ending an arm as worse that loses nothing. With what is beyond doubt,
# fewer than one in a hundred such arms are given up; one that is worse is tested a little longer.
WORSE_LEVEL = 0.007
# A loss as unlikely as this by chance ends the arm at any number of runs.
BEYOND_DOUBT = 0.0005
# Nor do pairs that trained the same model overrule so clear a loss of all runs together.
CONTRADICTED = 0.01
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
    UNREPORTED = "unreported"


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
        if compared and _beyond_doubt(compared, margin, design):
            return QualityFinding(QualityOutcome.WORSE, _worse_words(compared), compared)
        missing = QualityFinding(QualityOutcome.MORE_RUNS, "full runs are missing", compared)
        return underpowered(samples, margin, design) or missing
    # Runs past a look wait for the next one: looking in between would spend error unseen.
    looked = compare(samples.first(look))
    if looked is None or compared is None or samples.first(look).degrees_of_freedom < 2:
        return QualityFinding(
            QualityOutcome.MORE_RUNS, "too few runs to measure how much it varies"
        )
    if looked.spread < COPIED * max(margin, abs(samples.candidate[0])):
        reason = "every run gave exactly the same metric, so its variation is unknown"
        return QualityFinding(QualityOutcome.INCONCLUSIVE, reason)
    return _at_a_look(looked, compared, margin, design)


def look_reached(samples: Samples, design: Design) -> int | None:
    """The last look whose runs of both arms are there, None before the first."""
    there = [n for n in looks(design.n_max) if samples.baseline_at(n) is not None]
    return max(there, default=None)


def _beyond_doubt(
    compared: Comparison, margin: float, design: Design, level: float = BEYOND_DOUBT
) -> bool:
    if compared.df < DOUBT_DF or compared.spread == 0 or compared.difference > -margin / 2:
        return False
    return compared.p_worse <= level / design.metrics


def underpowered(samples: Samples, margin: float, design: Design) -> QualityFinding | None:
    """The refusal of a trial that could hardly prove the margin; None where it could."""
    spread = math.sqrt(samples.pooled_variance or 0.0)
    if len(samples.history) < ENOUGH_HISTORY or spread == 0:
        return None
    why = design.why_underpowered(spread, margin)
    if not why:
        return None
    provable = design.best_margin() * spread
    return QualityFinding(QualityOutcome.UNDERPOWERED, why, provable_margin=provable)


def _at_a_look(
    looked: Comparison, compared: Comparison, margin: float, design: Design
) -> QualityFinding:
    look = looked.runs
    level = spent(look, design.n_max, design.level)
    lost = looked.p_worse <= spent(look, design.n_max, WORSE_LEVEL / design.metrics)
    lost = lost and looked.difference <= -margin / 2
    if looked.p_inferior(margin) <= level:
        outcome, seen = QualityOutcome.HELD, looked
        reason = f"a loss of {margin:g} or more is ruled out"
    elif lost or _beyond_doubt(compared, margin, design):
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
    bar = quantile(1 - spent(last, last, design.level), compared.df + 2 * (last - compared.runs))
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
        metrics=1 + len(evidence.quality.guardrails),
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
    repeated = {name: len(runs) - len(replicates(runs)) for name, runs in asked.items()}
    repeating = [
        name
        for name, count in repeated.items()
        if count > 0 and count >= REPEATED_SHARE * len(asked[name])
    ]
    if repeating:
        reason = f"runs of {' and '.join(repeating)} repeat a seed on the same data"
        return replace(finding, outcome=QualityOutcome.SEEDS_REPEATED, reason=reason)
    due = look_at(len(samples.candidate), design.n_max)
    if due is None or samples.baseline_at(due) is not None:
        return finding
    reason = f"of {baseline_needed(due)} baseline runs of the same weeks "
    reason += f"that the look at {due} needs, {len(samples.baseline)} are there"
    return replace(finding, reason=reason, lacks_baseline_only=True)


# What the gate has decided stays decided.
DECIDED = frozenset({QualityOutcome.HELD, QualityOutcome.WORSE, QualityOutcome.CRASHED})


def judge_quality_of(arm: Arm, evidence: Evidence, design: Design) -> QualityFinding:
    """The gate's finding, or that quality is held where identity proves what it leaves open."""
    identity = identity_of(arm, evidence.baseline)
    finding = replace(judge_full_runs(arm, evidence, design), identity=identity)
    compared, margin = finding.comparison, evidence.quality.margin
    contradicted = compared and _beyond_doubt(compared, margin, design, CONTRADICTED)
    if identity is None or not identity.proven or contradicted or finding.outcome in DECIDED:
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


# Guardrails and signals: further metrics, judged on the same full runs by the same gate.
#
# A candidate is promoted only where the first metric and every guardrail hold at the level a
# above. A candidate that loses the margin of any one of them passes that one's gate with at
# most a, however it fares in the others and however they depend, so no level is divided
# (intersection-union test, Berger 1982). A candidate that loses nothing is turned off where any one
# of them looks worse, so there the levels are divided by their number: that of the looks, of a loss
# beyond doubt, and of an alarm in production (monitor.py).
#
# A signal is judged as a guardrail is, and neither stops a trial nor prolongs it: one that does not
# hold where all else promotes lets a person decide whether the flag is turned on.


@dataclass(frozen=True)
class MetricFinding:
    """What the gate says of one guardrail or signal; ``evidence`` and ``arm`` have it as theirs."""

    evidence: Evidence
    arm: Arm
    finding: QualityFinding

    @property
    def figures(self) -> QualityFigures:
        """As the decision has them, without what stands beside the first metric."""
        figures = quality_figures(self.finding, self.evidence, self.arm, None)
        return replace(figures, equivalence=None, identical=None, outcome=self.finding.outcome)

    def reason(self, code: str, then: str = "") -> Reason:
        """What is said of it, and what follows."""
        text = f"{self.arm.name}: {self.evidence.quality.metric}: {self.finding.reason}{then}"
        return Reason(code, text, self.arm.name)


def judge_metric(
    candidate: Arm, evidence: Evidence, metric: Metric, design: Design
) -> MetricFinding:
    """The finding of one; ``design`` is that of the first metric.

    A metric that a finished run lacks proves nothing, whatever the others had.
    """
    seen = evidence.by(metric)
    arm = seen.arm(candidate.name) or candidate
    runs = [*finished(arm.quality), *finished(seen.baseline.quality)]
    silent = sum(run.metric is None for run in runs)
    if silent:
        reason = f"{silent} of {len(runs)} finished runs did not report it as a finite number"
        return MetricFinding(seen, arm, QualityFinding(QualityOutcome.UNREPORTED, reason))
    own = replace(design, history=len(metric.history))
    return MetricFinding(seen, arm, judge_quality_of(arm, seen, own))
