"""What would conclude an open trial: of each kind the change with which the judge goes on."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.next_step import value_of_a_trial, value_of_shadow_runs
from compilegate.domain.judging.quality import design_of, samples_of
from compilegate.domain.judging.statistics import (
    DEFAULTS,
    LIKELY,
    LONGEST_SHADOW,
    SCHEDULE,
    SPEED_LOOKS,
    Design,
    runs_left_for,
)

# Longer histories and more production runs than these are not realistic advice.
LONGEST_HISTORY, MOST_RUNS = 60, 100_000


@dataclass(frozen=True)
class ProofOutlook:
    """What is, and what would make a proof likely; None where it would not, or already does.

    ``runs`` is the ``policy.max_quality_runs`` to set, ``proof_runs`` how many a proof takes then,
    ``runs_to_come`` how many production must have left for it. ``spread`` and the margins are in
    the metric's own unit.
    """

    margin: float
    spread: float
    most_runs: int
    past_runs: int
    runs_left: float | None
    wider_margin: float | None = None
    smaller_spread: float | None = None
    runs: int | None = None
    proof_runs: int | None = None
    runs_to_come: int | None = None
    history: int | None = None


def proof_outlook(
    evidence: Evidence, candidate: Arm, spread: float | None = None
) -> ProofOutlook | None:
    """By ``spread``, else by that of all recorded runs; None where neither is known."""
    design, variance = design_of(evidence, candidate), None
    if spread is None:
        variance = samples_of(candidate, evidence).pooled_variance
    spread = math.sqrt(variance) if variance else spread
    if design is None or not spread:
        return None
    margin, provable = evidence.quality.margin, design.best_margin(LIKELY)
    outlook = ProofOutlook(
        margin,
        spread,
        design.n_max,
        past_runs=len(evidence.quality.history),
        runs_left=evidence.runs_left(),
        wider_margin=provable * spread if provable * spread > margin else None,
        smaller_spread=margin / provable if margin / provable < spread else None,
    )
    if design.runs_needed(spread / margin, design.least_chance):
        return outlook
    return _with_more_runs(_with_more_history(outlook, design), design, evidence)


def _with_more_runs(outlook: ProofOutlook, design: Design, evidence: Evidence) -> ProofOutlook:
    """The smallest number of runs with which the judge would not refuse to begin."""
    extra = evidence.policy.quality_runs == "shadow"
    for n in SCHEDULE:
        if n <= design.n_max or (extra and n > LONGEST_SHADOW):
            continue
        longer = replace(design, n_max=n)
        if longer.runs_needed(outlook.spread / outlook.margin, design.least_chance):
            # Extra runs are fewer by default, so that a default itself cannot be requested.
            runs, enough = n + (extra and n in DEFAULTS), runs_left_for(n)
            scarce = outlook.runs_left is not None and outlook.runs_left < enough
            return replace(
                outlook, runs=runs, proof_runs=n, runs_to_come=enough if scarce else None
            )
    return outlook


def _with_more_history(outlook: ProofOutlook, design: Design) -> ProofOutlook:
    for longer in range(outlook.past_runs + 1, LONGEST_HISTORY + 1):
        known = replace(design, history=longer)
        if known.runs_needed(outlook.spread / outlook.margin, design.least_chance):
            return replace(outlook, history=longer)
    return outlook


def runs_that_pay(evidence: Evidence, candidate: Arm, speedup: float | None) -> int | None:
    """The least number of production runs to come from which on the trial, or its proof, pays.

    None where it pays now or hardly ever would, or where the runs left are unknown.
    """

    def pays(remaining: float) -> bool:
        changed = evidence.with_runs_left(remaining)
        if speedup is None:
            return _trial_pays(changed, remaining)
        design = design_of(changed, candidate)
        if design is None:
            return False
        value = value_of_shadow_runs(candidate, changed, design, speedup)
        return value is None or value[0].pays

    now = evidence.runs_left()
    return None if now is None else _least(now, pays)


def _trial_pays(evidence: Evidence, remaining: float) -> bool:
    if design_of(evidence) is None:
        return False
    steps = evidence.baseline.full_run_steps
    if steps is None:
        return True
    return value_of_a_trial(
        remaining, full_run_steps=steps, segment_steps=evidence.plan.speed_steps,
        arms=len(evidence.arms), blocks=SPEED_LOOKS[0],
    ).pays  # fmt: skip


def _least(now: float, pays: Callable[[float], bool]) -> int | None:
    first = math.floor(now) + 1
    if first > MOST_RUNS or pays(now) or not pays(MOST_RUNS):
        return None
    return first + bisect_left(range(first, MOST_RUNS), True, key=pays)
