"""What would make a proof possible or worth its price, by the judge's own sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from compilegate.domain.formats import count, number, significant
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.looks import SCHEDULE, SPEED_LOOKS
from compilegate.domain.judging.power import LIKELY, Design
from compilegate.domain.judging.quality import design_of, samples_of
from compilegate.domain.judging.value_of_information import value_of_a_trial, value_of_shadow_runs
from compilegate.domain.workload.model import Policy
from compilegate.report.trial_report import TrialReport

# Beyond this nobody has the past runs, or the runs to come.
LONGEST_HISTORY, MOST_RUNS = 60, 100_000
CHEAPER_MODE = (
    "A cheaper mode: full runs that production makes anyway instead of extra ones "
    "(policy.quality_runs: hybrid or canary, for a workload that is registered)."
)


def proof_options(trial: TrialReport, *, with_runs: bool = True) -> Iterator[str]:
    """The margin, the runs, the history and the spread with which a proof would be likely."""
    if isinstance(trial.measured, str):
        return
    evidence = trial.measured.evidence
    design, spread = design_of(evidence), _spread(trial)
    if design is None or not spread:
        return
    margin = evidence.quality.margin
    provable = design.best_margin(LIKELY) * spread
    if provable > margin:
        yield (
            f"A wider margin: {significant(provable)} could be proven with up to {design.n_max} "
            "runs (80% chance if nothing is lost), should the team accept such a loss (now "
            f"{significant(margin)})."
        )
    if design.runs_needed(spread / margin, design.least_chance) is None:
        if with_runs:
            yield from _more_runs(evidence, design, spread / margin)
        yield from _more_history(evidence, design, spread / margin)
    bearable = margin / design.best_margin(LIKELY)
    if bearable < spread:
        yield (
            f"A metric that varies less: {significant(bearable)} from run to run or less (now "
            f"{significant(spread)}), for instance on a larger validation set."
        )


def _spread(trial: TrialReport) -> float | None:
    """The metric's spread from run to run: the decision's, else that of all runs known."""
    found = number(trial.quality.get("spread"))
    if found is not None or isinstance(trial.measured, str):
        return found
    variance = samples_of(trial.measured.lead.arm, trial.measured.evidence).pooled_variance
    return math.sqrt(variance) if variance else None


def _more_runs(evidence: Evidence, design: Design, relative: float) -> Iterator[str]:
    """The smallest number of runs with which the judge would not refuse to begin."""
    for n in SCHEDULE:
        if n <= design.n_max:
            continue
        if replace(design, n_max=n).runs_needed(relative, design.least_chance) is None:
            continue
        remaining = evidence.runs_remaining
        if remaining is not None and remaining < 2 * n:
            yield (
                f"More production runs to come: {2 * n} or more (now {count(remaining)}), of which "
                f"{n} could go into a proof."
            )
        yield (
            f"More runs: policy.max_quality_runs of {_asked_for(n, evidence.policy)} or more "
            f"(now up to {design.n_max} runs)."
        )
        return


def _asked_for(n: int, policy: Policy) -> int:
    """The default means fewer runs where they are extra ones, so it cannot be asked for."""
    default = Policy().max_quality_runs
    return n + 1 if policy.quality_runs == "shadow" and n == default else n


def _more_history(evidence: Evidence, design: Design, relative: float) -> Iterator[str]:
    past = len(evidence.quality.history)
    for longer in range(past + 1, LONGEST_HISTORY + 1):
        if replace(design, history=longer).runs_needed(relative, design.least_chance):
            yield f"More history: {longer} past runs in quality.history (now {past})."
            return


def cheaper_proof(trial: TrialReport) -> Iterator[str]:
    """With how many runs to come the measurement or the proof would pay, and what shortens it."""
    if isinstance(trial.measured, str):
        return
    evidence, candidate = trial.measured.evidence, trial.measured.lead.arm
    now, speedup = evidence.runs_remaining, trial.speedup

    def proof_pays(remaining: float) -> bool:
        asked = replace(evidence, runs_remaining=remaining)
        design = design_of(asked)
        if design is None or speedup is None:
            return False
        found = value_of_shadow_runs(candidate, asked, design, speedup)
        return found is None or found[0].pays

    def trial_pays(remaining: float) -> bool:
        return _trial_pays(replace(evidence, runs_remaining=remaining))

    needed = None if now is None else _least(now, trial_pays if speedup is None else proof_pays)
    if needed is not None and now is not None:
        yield f"More runs to come: from {count(needed)} on it would pay (now {count(now)})."
    if speedup is not None:
        yield from proof_options(trial, with_runs=False)
        if evidence.policy.quality_runs == "shadow":
            yield CHEAPER_MODE
        yield (
            "A shorter proof: a wider margin, a metric that varies less or more past runs in "
            "quality.history."
        )
    else:
        yield "Fewer candidates, or longer runs: measuring costs a smaller share of a long run."


def _trial_pays(evidence: Evidence) -> bool:
    steps, remaining = evidence.baseline.full_run_steps, evidence.runs_remaining
    if design_of(evidence) is None or remaining is None:
        return False
    return (
        steps is None
        or value_of_a_trial(
            remaining,
            full_run_steps=steps,
            segment_steps=evidence.plan.speed_steps,
            arms=len(evidence.arms),
            blocks=SPEED_LOOKS[0],
        ).pays
    )


def _least(now: float, pays: Callable[[float], bool]) -> int | None:
    """The least number of runs to come that pays, None if it pays now or hardly ever."""
    low, high = math.floor(now), MOST_RUNS
    if low >= high or pays(now) or not pays(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high
