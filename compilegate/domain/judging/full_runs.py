"""The second gate for one candidate: its full runs' quality, crashes and wall clock.

What the gate may use is fixed by policy before any run: how many runs, of which mode.
"""

from __future__ import annotations

import math
from dataclasses import replace

from compilegate.domain.judging.evidence import Arm, Evidence, finished, metrics, walls
from compilegate.domain.judging.looks import next_look
from compilegate.domain.judging.noninferiority import Samples, history_weight
from compilegate.domain.judging.power import EVEN, Design, design_for
from compilegate.domain.judging.quality import (
    TELLING_HISTORY,
    QualityFinding,
    QualityOutcome,
    judge_quality,
    underpowered,
)
from compilegate.domain.judging.value_of_information import InformationValue, value_of_runs
from compilegate.domain.reasons import Reason

# Baseline runs that must have been trained in the same weeks as the candidate's.
CONCURRENT_RUNS = 1


def design_of(evidence: Evidence) -> Design | None:
    """What the quality gate of each candidate may use, None if not even two runs are left.

    Runs that production made since the trial began count as remaining: the design is fixed
    by what there was to begin with, whether or not ``runs_remaining`` is counted down.
    """
    remaining = evidence.runs_remaining
    made = sum(run.mode != "shadow" for arm in evidence.arms for run in arm.quality)
    return design_for(
        evidence.policy,
        history=len(evidence.quality.history),
        candidates=len(evidence.candidates),
        runs_remaining=None if remaining is None else remaining + made,
    )


def first_runs(evidence: Evidence) -> int:
    """One run against a telling history can already prove disaster; else a spread needs two."""
    return 1 if len(evidence.quality.history) >= TELLING_HISTORY else 2


def samples_of(candidate: Arm, evidence: Evidence) -> Samples:
    """The final metrics that the gate compares, higher is better."""
    return Samples(
        candidate=evidence.oriented(metrics(candidate.quality)),
        baseline=evidence.oriented(metrics(evidence.baseline.quality)),
        history=evidence.oriented(evidence.quality.history),
    )


def refuse_before_spending(evidence: Evidence, design: Design) -> Reason | None:
    """Why no number of runs that policy allows would prove the margin, by history alone."""
    history = Samples((), (), evidence.oriented(evidence.quality.history))
    found = underpowered(history, evidence.quality.margin, design)
    return Reason("underpowered", f"{evidence.quality.metric}: {found.reason}") if found else None


def judge_full_runs(candidate: Arm, evidence: Evidence, design: Design) -> QualityFinding:
    """Decide one candidate on its full runs."""
    if any(not run.finished for run in candidate.quality):
        return QualityFinding(QualityOutcome.CRASHED, "a full run crashed or diverged")
    failures = sum(not run.finished for run in evidence.baseline.quality)
    if failures >= 2 and failures > len(finished(evidence.baseline.quality)):
        reason = f"{failures} full runs of the baseline failed: nothing to compare with"
        return QualityFinding(QualityOutcome.INCONCLUSIVE, reason)
    samples = samples_of(candidate, evidence)
    found = judge_quality(samples, evidence.quality.margin, design)
    if found.outcome is QualityOutcome.HELD and len(samples.baseline) < CONCURRENT_RUNS:
        reason = "history alone may have drifted: a baseline run of today is missing"
        return replace(
            found, outcome=QualityOutcome.MORE_RUNS, reason=reason, lacks_baseline_only=True
        )
    return found


def value_of_shadow_runs(
    candidate: Arm, evidence: Evidence, design: Design, speedup: float
) -> tuple[InformationValue, int] | None:
    """What the dedicated runs still needed bring and cost, and how many; None if L is unknown."""
    remaining = evidence.runs_remaining
    samples = samples_of(candidate, evidence)
    n, variance = len(samples.candidate), samples.pooled_variance
    if remaining is None:
        return None
    needed = None
    if variance and samples.degrees_of_freedom >= 2:
        relative = math.sqrt(variance) / evidence.quality.margin
        needed = design.runs_needed(relative, EVEN) or design.n_max
    target = max(needed or 0, next_look(n, design.n_max) or n)
    if evidence.policy.quality_runs == "hybrid":  # production carries all but the first
        target = first_runs(evidence)
    saved = 1 - evidence.price_ratio(candidate) / speedup
    runs = max(target - n, 0)
    cost = runs * (1 - saved) + paid_baseline_runs(evidence, n, target)
    return value_of_runs(remaining, saved, cost, runs), runs


def paid_baseline_runs(evidence: Evidence, n: int, target: int) -> int:
    """Dedicated baseline runs that balance ``target`` candidate runs, history counted.

    Production's own baseline runs come for nothing beside a shadow trial, so it pays for
    some only when none came in.
    """
    have = len(finished(evidence.baseline.quality))
    if evidence.plan.production_beside and (have or not n):
        return 0
    balanced = math.ceil(target - history_weight(len(evidence.quality.history))) - have
    return max(balanced, concurrent_runs_missing(evidence, target))


def concurrent_runs_missing(evidence: Evidence, target: int) -> int:
    """Baseline runs of the same weeks without which ``target`` candidate runs prove nothing."""
    have = len(finished(evidence.baseline.quality))
    untimed = not walls(evidence.baseline.quality) and not evidence.history_wall_seconds
    return max(CONCURRENT_RUNS - have, 0) if target >= 2 or untimed else 0
