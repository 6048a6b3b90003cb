"""What would conclude an open trial: of each kind the change with which the judge goes on."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

from compilegate.domain.decision import SHADOW
from compilegate.domain.judging.comparison import samples_of
from compilegate.domain.judging.design import (
    DEFAULTS,
    LIKELY,
    LONGEST_SHADOW,
    SCHEDULE,
    runs_left_for,
)
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.next_step import value_of_a_trial, value_of_shadow_runs
from compilegate.domain.judging.quality import design_of

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
    design = design_of(evidence, candidate)
    if spread is None:
        spread = math.sqrt(samples_of(candidate, evidence).pooled_variance or 0.0)
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
    relative = spread / margin
    if design.runs_needed(relative, design.least_chance):
        return outlook
    for history in range(outlook.past_runs + 1, LONGEST_HISTORY + 1):
        if replace(design, history=history).runs_needed(relative, design.least_chance):
            outlook = replace(outlook, history=history)
            break
    # The smallest number of runs with which the judge would not refuse to begin.
    extra = evidence.policy.quality_runs == SHADOW
    for n in SCHEDULE:
        if n <= design.n_max or (extra and n > LONGEST_SHADOW):
            continue
        if replace(design, n_max=n).runs_needed(relative, design.least_chance):
            # Extra runs are fewer by default, so that a default itself cannot be requested.
            runs = n + 1 if extra and n in DEFAULTS else n
            enough = runs_left_for(n)
            scarce = outlook.runs_left is not None and outlook.runs_left < enough
            return replace(
                outlook, runs=runs, proof_runs=n, runs_to_come=enough if scarce else None
            )
    return outlook


def runs_that_pay(evidence: Evidence, candidate: Arm, speedup: float | None) -> int | None:
    """The least number of production runs to come from which on the trial, or its proof, pays.

    None where it pays now or hardly ever would, or where the runs left are unknown.
    """

    def pays(remaining: float) -> bool:
        changed = evidence.with_runs_left(remaining)
        design = design_of(changed, candidate if speedup else None)
        if design is None:
            return False
        value = value_of_a_trial(changed)
        if speedup:
            value = value_of_shadow_runs(candidate, changed, design, speedup)
        return value is None or value.pays

    now = evidence.runs_left()
    first = MOST_RUNS + 1 if now is None else math.floor(now) + 1
    if now is None or first > MOST_RUNS or pays(now) or not pays(MOST_RUNS):
        return None
    return first + bisect_left(range(first, MOST_RUNS), True, key=pays)
