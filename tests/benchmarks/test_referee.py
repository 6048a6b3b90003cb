"""The referee: what its rules decide on tables made by hand, its draws and its page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.referee import page
from benchmarks.referee.groups import groups
from benchmarks.referee.played import kept_results, rules_digest
from benchmarks.referee.rules import kayenta, rules
from benchmarks.referee.trial import Trial, draw, promotes

RULES = rules()
FIVE = "not significant, Mann-Whitney, 5 each"
EIGHT = range(1, 9)  # their variance is 6: two means differ by sqrt(6/8 + 6/8) = 1.225


def trial(
    baseline: Sequence[float], candidate: Sequence[float], margin: float, past: Sequence[float] = ()
) -> Trial:
    metrics = (np.array(one, dtype=float) for one in (baseline, candidate))
    return Trial(margin, tuple(past), (1,), *metrics)


def moved(by: float) -> list[float]:
    return [value + by for value in EIGHT]


@pytest.mark.parametrize(
    ("rule", "baseline", "candidate", "margin", "passes"),
    [
        ("one run each", [10], [9.1], 1, True),
        ("one run each", [10], [9.0], 1, False),
        ("means of three runs each", [9, 10, 11], [7, 9, 11.3], 1, True),
        ("means of three runs each", [9, 10, 11], [7, 9, 10.7], 1, False),
        # The two-sided 5 % point of t with 14 degrees of freedom is 2.145: 2.627 / 1.225.
        ("not significant, Welch, 8 each", EIGHT, moved(-2.6), 9, True),
        ("not significant, Welch, 8 each", EIGHT, moved(-2.7), 9, False),
        ("not significant, Welch, 8 each", EIGHT, moved(2.7), 9, True),
        # Exact, of 252 orders: U of 3 or less has a chance of 14/252, of 2 or less 8/252.
        (FIVE, [1, 2, 3, 4, 5], [0, 0.1, 0.2, 1.5, 2.5], 9, True),
        (FIVE, [1, 2, 3, 4, 5], [0, 0.1, 0.2, 1.5, 1.6], 9, False),
        (FIVE, [1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 9, True),
        # The one-sided point is 1.761: 2.157 / 1.225.
        ("non-inferiority, 8 each", EIGHT, EIGHT, 2.1, False),
        ("non-inferiority, 8 each", EIGHT, EIGHT, 2.2, True),
        ("non-inferiority, 8 each", EIGHT, moved(-1), 3.1, False),
        ("non-inferiority, 8 each", EIGHT, moved(-1), 3.2, True),
    ],
)  # fmt: skip
def test_a_fixed_rule_on_a_table_by_hand(
    rule: str, baseline: Sequence[float], candidate: Sequence[float], margin: float, passes: bool
) -> None:
    played = trial(baseline, candidate, margin)

    assert passes is promotes(RULES[rule], played)
    assert (len(baseline), len(candidate)) == (played.baseline_runs, played.candidate_runs)


def test_the_planned_test_takes_the_textbooks_number_of_runs() -> None:
    """Of a margin of one sd: 2 (1.645 + 1.282)^2 = 17.1, rounded up, and one for Student's t."""
    played = trial([1, -1] * 20, [1, -1] * 20, 1, past=(1, 1, -1, -1, 0))

    promotes(RULES["non-inferiority, as many as planned"], played)

    assert 19 == played.candidate_runs


def test_kayentas_interval_is_that_of_its_own_suite() -> None:
    """MannWhitneySuite: 95 % of (10, 20, 30, 40) against (1, 2, 3, 4)."""
    canary, control = [10.0, 20.0, 30.0, 40.0], [1.0, 2.0, 3.0, 4.0]
    low, high = (kayenta.shift_at(q, canary, control) for q in (1.959964, -1.959964))

    assert (6.0, 39.0) == (low, high)
    # The statistic is zero from the eighth to the ninth of the sixteen differences.
    assert 18 < kayenta.shift_at(0.0, canary, control) < 26


def test_the_judge_promotes_what_is_as_good_and_stops_what_is_worse() -> None:
    values = [value % 7 / 7 for value in range(0, 400, 3)]
    good, worse = (trial(values, [v - by for v in values], 1.5, values[:5]) for by in (0, 1.5))

    assert [True, False] == [promotes(RULES["Compilegate"], one) for one in (good, worse)]
    assert 0 < good.other < 0.5
    assert 1 < good.candidate_runs < 20


def test_a_trials_runs_are_the_same_for_every_rule_and_a_loss_is_exactly_the_margin() -> None:
    group = groups()[1]
    bad, good = (draw(group, 0.5, 3, loses=loses) for loses in (True, False))
    lost = good.candidate_metrics - bad.candidate_metrics

    assert bad.past == good.past
    assert (bad.baseline_metrics == good.baseline_metrics).all()
    assert pytest.approx(0.5 * group.metrics.std()) == bad.margin
    assert pytest.approx(bad.margin) == lost.min() == lost.max()
    assert set(good.candidate_metrics) <= set(group.metrics)
    assert (good.candidate_metrics != draw(group, 0.5, 4, loses=False).candidate_metrics).any()


def test_the_results_are_of_these_rules_and_data_and_the_page_shows_them() -> None:
    """Where this fails: python -m benchmarks.referee, or --document for the page alone."""
    kept, text = kept_results(), page.PAGE.read_text()

    assert rules_digest() == kept["rules"]
    assert RULES.keys() == {cell["rule"] for cell in kept["cells"]}
    assert [group.name for group in groups()] == [group["name"] for group in kept["groups"]]
    assert kept["judge"] in text
    assert {match["name"] for match in page.BLOCK.finditer(text)} == page.BLOCKS.keys()
    assert page.refreshed(text, kept) == text
