"""How many runs a proof takes, and what so many runs could prove, before any is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.judging.statistics import (
    LIKELY,
    VERY_LIKELY,
    Design,
    design_for,
    looks,
    runs_for_one_look,
)
from compilegate.domain.workload.model import Policy

CHANCES = (LIKELY, VERY_LIKELY)
# Rows and columns of the planning table: spread of a run over the margin, length of the history.
RELATIVE_SPREADS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
HISTORIES = (0, 5, 20)
MODES = ("shadow", "hybrid")


@dataclass(frozen=True)
class Question:
    """One case: may a loss of ``margin`` be ruled out where runs differ by ``spread``?"""

    spread: float
    margin: float
    history: int
    candidates: int
    policies: Sequence[Policy]
    runs_remaining: float | None = None
    label: str | None = None  # in place of the policy's mode


def default_policies(alpha: float, max_runs: int | None = None) -> list[Policy]:
    """Both modes as shipped, or the one limit that the user gave."""
    if max_runs is not None:
        return [Policy(alpha=alpha, max_quality_runs=max_runs)]
    return [Policy(alpha=alpha, quality_runs=mode) for mode in MODES]


def planning_table(alpha: float, candidates: int) -> dict[str, Any]:
    """Runs needed by spread, mode and history, and the smallest provable margin by runs."""
    cells, margins = [], []
    for policy in default_policies(alpha):
        for history in HISTORIES:
            design = _design(policy, history, candidates)
            place = {"mode": policy.quality_runs, "max_runs": design.n_max, "history": history}
            cells += [
                {**place, "spread_per_margin": relative, **_runs(design, relative)}
                for relative in RELATIVE_SPREADS
            ]
            margins += [
                {**place, "runs": n, "margin_per_spread": design.provable_margin(n)}
                for n in looks(design.n_max)
            ]
    return {
        "alpha": alpha, "candidates": candidates,
        "runs_needed": cells, "provable_margin": margins,
    }  # fmt: skip


def answer(question: Question) -> dict[str, Any]:
    """The case as it stands, then what each policy's runs can prove."""
    return {
        "spread": question.spread,
        "margin": question.margin,
        "spread_per_margin": question.spread / question.margin,
        "history": question.history,
        "candidates": question.candidates,
        "alpha": question.policies[0].alpha,
        "designs": [_case(question, policy) for policy in question.policies],
    }


def _case(question: Question, policy: Policy) -> dict[str, Any]:
    design = design_for(
        policy, history=question.history, candidates=question.candidates,
        runs_remaining=question.runs_remaining,
    )  # fmt: skip
    document: dict[str, Any] = {"mode": question.label or policy.quality_runs}
    if design is None:
        return {**document, "max_runs": None, "refused": True, "runs_80": None, "runs_90": None}
    relative = question.spread / question.margin
    single = [
        runs_for_one_look(relative, history=question.history, level=design.level, chance=chance)
        for chance in CHANCES
    ]
    margins = {n: design.provable_margin(n) for n in looks(design.n_max)}
    return {
        **document,
        "max_runs": design.n_max,
        "level": design.level,
        **_runs(design, relative),
        "single_test_80": single[0],
        "single_test_90": single[1],
        "provable_margin": design.best_margin(LIKELY) * question.spread,
        "provable_margin_by_runs": [
            {"runs": n, "margin": margin and margin * question.spread}
            for n, margin in margins.items()
        ],
        "least_chance": design.least_chance,
        "refused": design.runs_needed(relative, design.least_chance) is None,
        "refused_before_start": question.history >= ENOUGH_HISTORY,
    }


def with_shadow(policy: Policy) -> list[Policy]:
    """The policy's own mode, and extra runs only, which need no production."""
    own = [policy]
    return (
        own if policy.quality_runs == "shadow" else [replace(policy, quality_runs="shadow"), policy]
    )


def _design(policy: Policy, history: int, candidates: int) -> Design:
    proof = design_for(policy, history=history, candidates=candidates, runs_remaining=None)
    if proof is None:
        raise ValueError(f"a policy of {policy.max_quality_runs} runs proves nothing")
    return proof


def _runs(design: Design, relative: float) -> dict[str, int | None]:
    """None: no allowed number of runs has that chance."""
    low, high = (design.runs_needed(relative, chance) for chance in CHANCES)
    return {"runs_80": low, "runs_90": high}
