"""The vectorised gate and the judge's are the same rules."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.decision.gate import (
    DESIGNS,
    Sample,
    baseline_runs,
    pass_levels,
    statistic,
)
from compilegate.domain.judging.comparison import Samples, baseline_needed, compare
from compilegate.domain.judging.design import SCHEDULE, Design, looks, spent
from compilegate.domain.judging.quality import QualityOutcome, judge_quality

ALPHA = 0.05


@pytest.mark.parametrize("history", [0, 1, 3, 20])
@pytest.mark.parametrize(("n", "beside"), [(2, 2), (3, 2), (5, 5), (12, 6)])
@pytest.mark.parametrize(("spread", "drift"), [(1.0, 0.0), (0.4, 0.3), (2.0, -0.8), (1.0, 4.0)])
def test_the_judges_comparison_is_the_vectorised_one(
    history: int, n: int, beside: int, spread: float, drift: float
) -> None:
    """Calm and wild candidates, history that agrees and that contradicts."""
    rng = np.random.default_rng([history, n, beside])
    ours = spread * rng.standard_normal((40, n))
    theirs, past = rng.standard_normal((40, beside)), drift + rng.standard_normal((40, history))
    vectorised = statistic(Sample.of(ours), Sample.of(theirs), Sample.of(past))
    assert vectorised is not None
    judged = [
        compare(Samples(ours[i].tolist(), theirs[i].tolist(), past[i].tolist())) for i in range(40)
    ]
    figures = [(one.difference, one.standard_error, one.df) for one in judged if one is not None]
    levels = [one.p_inferior(0.0) for one in judged if one is not None]

    expected = zip(vectorised.difference, vectorised.error, vectorised.df, strict=True)
    assert pytest.approx(np.array(list(expected))) == np.array(figures)
    assert pytest.approx(vectorised.level, rel=1e-6, abs=1e-12) == np.array(levels)


@pytest.mark.parametrize("n_max", [5, 12, 36, 96])
@pytest.mark.parametrize("history", [0, 5, 20])
@pytest.mark.parametrize("sd", [0.4, 1.0])
def test_every_look_of_the_judge_passes_where_the_vectorised_gate_does(
    n_max: int, history: int, sd: float
) -> None:
    """Trials that lose the margin of 1 and less, to the look at which the judge ends them."""
    paths = 40
    rng = np.random.default_rng([n_max, history])
    ours, theirs = rng.standard_normal((2, paths, n_max))
    ours += np.linspace(0, 2, paths)[:, None]
    past = rng.standard_normal((paths, history)) + 0.5 * rng.standard_normal((paths, 1))
    outcomes = set()
    for path in range(paths):
        for n in looks(n_max):
            one, other, old = (x[path : path + 1] for x in (ours[:, :n], theirs[:, :n], past))
            vectorised = statistic(Sample.of(one), Sample.of(other), Sample.of(old))
            assert vectorised is not None
            samples = Samples(*((sd * x[0]).tolist() for x in (one - 1 / sd, other, old)))
            outcome = judge_quality(samples, 1.0, Design(history, n_max, ALPHA)).outcome
            passes = bool(vectorised.level[0] <= spent(n, n_max, ALPHA))

            assert passes == (outcome is QualityOutcome.HELD), (path, n)
            outcomes.add(outcome)
            if outcome is not QualityOutcome.MORE_RUNS:
                break
    assert {QualityOutcome.HELD, QualityOutcome.MORE_RUNS} < outcomes


def test_the_patterns_of_baseline_runs_are_those_that_the_rules_allow() -> None:
    for look, n in enumerate(SCHEDULE):
        counts = {design: baseline_runs(design, n, look) for design in DESIGNS}
        assert baseline_needed(n) == counts["half as many"] == min(counts.values())


@pytest.mark.parametrize("spread", [1.0, 1.41, 2.0])
def test_one_look_alone_is_at_most_its_level_whatever_the_candidates_own_spread(
    spread: float,
) -> None:
    """With the pooled degrees of freedom the share was up to 1.7 and 2.6 times the level."""
    levels = pass_levels(
        np.random.default_rng(2), 100_000, design="half as many", history=5,
        spread=spread, looks=(2, 3, 5, 8, 12),
    )  # fmt: skip
    for level in (0.05, 0.0125):
        assert ((levels <= level).mean(axis=0) < 1.45 * level).all()
