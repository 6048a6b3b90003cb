"""What would conclude an open trial: each change is the least with which the judge goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.judging import outlook
from compilegate.domain.judging.design import LIKELY
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.outlook import proof_outlook, runs_that_pay
from compilegate.domain.judging.quality import design_of
from tests.report import samples


def trial(**policy: Any) -> tuple[Evidence, Arm]:
    """Six past runs that vary too much for the margin of 0.02; 12 extra runs at most."""
    evidence = read_evidence(samples.underpowered()["evidence"])
    changed = replace(evidence, policy=replace(evidence.policy, **policy))
    return changed, changed.candidates[0]


def with_runs_left(evidence: Evidence, runs: float | None) -> Evidence:
    return replace(evidence, runs_remaining=None, plan=replace(evidence.plan, runs_at_start=runs))


# Mode, spread, runs left: wider margin, smaller spread, runs to set, those of a proof, runs that
# production must have left, past runs.
OUTLOOKS: list[tuple[str, float | None, float | None, tuple[Any, ...]]] = [
    ("shadow", 0.015, 728, (None, None, None, None, None, None)),
    ("shadow", 0.02, 728, (0.0230, 0.0174, None, None, None, None)),  # a fair chance already
    ("shadow", 0.02497, 728, (0.02873, 0.0174, 18, 18, None, 7)),  # one past run more
    ("shadow", 0.025, 36, (0.0288, 0.0174, 18, 18, None, 8)),
    ("shadow", 0.025, None, (0.0288, 0.0174, 18, 18, None, 8)),
    ("shadow", 0.02568, 728, (0.02955, 0.0174, 18, 18, None, 60)),
    ("shadow", 0.025685, 728, (0.02955, 0.0174, 18, 18, None, None)),  # 61 past runs
    ("shadow", None, 728, (0.0327, 0.0174, 18, 18, None, None)),
    ("shadow", 0.05, 728, (0.0575, 0.0174, None, None, None, None)),  # beyond what extra runs prove
    ("hybrid", 0.0615, 50, (0.05024, 0.02448, 36, 36, 72, 15)),
    ("hybrid", 0.05, 20, (0.0701, 0.01427, 18, 18, 36, None)),
    ("hybrid", 0.06, 728, (0.0400, 0.0300, None, None, None, None)),
    ("hybrid", 0.08, 728, (0.0534, 0.0300, 54, 54, None, None)),
]


@pytest.mark.parametrize(("mode", "spread", "left", "expected"), OUTLOOKS)
def test_what_would_make_a_proof_likely(mode, spread, left, expected):
    evidence, candidate = trial(quality_runs=mode)
    now = proof_outlook(with_runs_left(evidence, left), candidate, spread)

    changes = (
        now.wider_margin, now.smaller_spread, now.runs, now.proof_runs, now.runs_to_come,
        now.history,
    )  # fmt: skip
    assert [None if one is None else pytest.approx(one, rel=2e-3) for one in expected] == list(
        changes
    )
    assert (0.02, 6, left) == (now.margin, now.past_runs, now.runs_left)
    assert pytest.approx(spread or 0.02844, rel=1e-3) == now.spread


def test_a_default_is_asked_for_by_one_more_since_a_default_asks_for_fewer_extra_runs():
    evidence, candidate = trial()
    now = proof_outlook(evidence, candidate, 0.035)

    assert (37, 36, 12) == (now.runs, now.proof_runs, now.most_runs)
    # A spread that the margin just bears, a power of two so that nothing is rounded.
    margin = 0.25 * design_of(evidence, candidate).best_margin(LIKELY)
    even = replace(evidence, quality=replace(evidence.quality, margin=margin))
    seen = proof_outlook(even, candidate, 0.25)
    assert (None, None) == (seen.wider_margin, seen.smaller_spread)


def test_fewer_runs_than_the_policy_allows_are_no_advice():
    """Two runs would be enough for a chance of a fifth where one in four proofs may be wrong."""
    evidence, candidate = trial(quality_runs="hybrid", alpha=0.25)

    assert None is proof_outlook(evidence, candidate, 1.0).runs


def test_nothing_is_known_without_a_spread_or_without_two_runs():
    evidence, candidate = trial()
    unmeasured = replace(evidence, quality=replace(evidence.quality, history=()))

    assert proof_outlook(unmeasured, candidate) is proof_outlook(evidence, candidate, 0.0) is None
    assert proof_outlook(with_runs_left(evidence, 1), candidate, 0.02) is None


# One run of each arm costs 2 less the share that is saved, 0.8 of which each run after it brings:
# 100,000 runs are just enough.
LAST = 1 / (1 - 2 / (0.8 * (99_999.5 - 1) + 1))


@pytest.mark.parametrize(
    ("left", "speedup", "needed"),
    [(2, None, 14), (13.5, None, 14), (14, None, None), (2, 1.3, 11), (2, 1.01, 253),
     (2, 1.00001, None), (200_000, 1.3, None), (2, LAST, 100_000), (99_999, LAST, 100_000),
     (100_000, LAST, None)],
)  # fmt: skip
def test_the_runs_from_which_on_a_trial_or_its_proof_pays(left, speedup, needed):
    evidence, candidate = trial(quality_runs="hybrid")

    assert needed == runs_that_pay(with_runs_left(evidence, left), candidate, speedup)
    assert runs_that_pay(with_runs_left(evidence, None), candidate, speedup) is None
    unknown = replace(candidate, full_run_steps=None)
    unmeasured = replace(evidence, arms=(replace(evidence.baseline, full_run_steps=None), unknown))
    least = runs_that_pay(with_runs_left(unmeasured, left), unknown, None)
    assert (4 if left == 2 else None) == least


def test_a_proof_may_use_what_its_candidate_may_and_a_trial_what_any_may(monkeypatch):
    asked: list[Arm | None] = []
    monkeypatch.setattr(outlook, "design_of", lambda _, one: asked.append(one))
    evidence, candidate = trial()

    assert runs_that_pay(evidence, candidate, None) is runs_that_pay(evidence, candidate, 1.3)
    assert [None, None, candidate, candidate] == asked
