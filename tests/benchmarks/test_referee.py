"""The referee: what its rules decide on tables made by hand, its draws, its data and its page."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decision.provenance import judge_name
from benchmarks.referee import page
from benchmarks.referee import rules as package
from benchmarks.referee.groups import FEWEST, Group, groups, read
from benchmarks.referee.played import kept_results, play, results, rules_digest
from benchmarks.referee.rules import kayenta, rules
from benchmarks.referee.trial import MOST_CANDIDATE, Trial, draw, promotes

RULES = rules()
FIVE = "not significant, Mann-Whitney, 5 each"
EIGHT = range(1, 9)  # their variance is 6: two means differ by sqrt(6/8 + 6/8) = 1.225
HEADER = "# source: s\n# licence: l\n# metric: m\n# goal: maximize\n# groups: g\n# run: r\n"
ROWS = [f"one,{run},{run % 3}" for run in range(FEWEST)]


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


def test_a_test_after_every_run_ends_with_the_first_that_shows_it() -> None:
    rule = RULES["t test after every run, 3 to 36 each"]
    baseline = [0, 1, 2] * 20
    soon, late, never = (trial(baseline, baseline, margin) for margin in (2.0, 1.0, 0.1))

    assert [True, True, False] == [promotes(rule, one) for one in (soon, late, never)]
    # Of three runs each the error is 0.816, the point of t with 4 degrees of freedom 2.132.
    assert 3 == soon.candidate_runs
    assert 3 < late.candidate_runs < 36 == never.candidate_runs


def test_kayentas_interval_is_that_of_its_own_suite() -> None:
    """MannWhitneySuite: 95 % of (10, 20, 30, 40) against (1, 2, 3, 4)."""
    canary, control = [10.0, 20.0, 30.0, 40.0], [1.0, 2.0, 3.0, 4.0]
    low, high = (kayenta.shift_at(q, canary, control) for q in (1.959964, -1.959964))

    assert (6.0, 39.0) == (low, high)
    # The statistic is zero from the eighth to the ninth of the sixteen differences.
    assert 18 < kayenta.shift_at(0.0, canary, control) < 26


def test_kayenta_fails_what_is_lower_beyond_its_tolerance() -> None:
    control = [float(value) for value in range(10)]

    def low(by: float) -> bool:
        return kayenta.is_low([value - by for value in control], control)

    # With ten each the 98 % interval ends four above the estimate: -by + 4 < -by / 4.
    assert [False, False, True] == [low(by) for by in (-8.0, 5.0, 6.0)]


def test_the_judge_promotes_what_is_as_good_and_stops_what_is_worse() -> None:
    values = [value % 7 / 7 for value in range(0, 400, 3)]
    good, worse = (trial(values, [v - by for v in values], 1.5, values[:5]) for by in (0, 1.5))

    assert [True, False] == [promotes(RULES["Compilegate"], one) for one in (good, worse)]
    assert 0 < good.other < 0.5
    assert 1 < good.candidate_runs < 20


def test_a_rule_that_asks_for_too_many_runs_promotes_nothing() -> None:
    played = draw(groups()[0], 1.0, 0, loses=False)

    assert not promotes(lambda one: all(one.candidate() for _ in itertools.count()), played)
    assert MOST_CANDIDATE == played.candidate_runs


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


def test_promotions_are_counted_by_group_and_runs_averaged() -> None:
    two = [Group("low", {}, np.array([0.0, 1.0])), Group("high", {}, np.array([10.0, 11.0]))]
    judges = {"high ones": lambda one: one.baseline() > 5, "all": lambda one: bool(one.each(2))}
    tasks = itertools.product(two, (0, 1, 2))
    found = results([one for group, index in tasks for one in play(judges, group, 1, index)], two)
    cells = {(cell["rule"], cell["loses"]): cell for cell in found["cells"]}

    assert judge_name() == found["judge"]
    assert [0, 3] == cells["high ones", True]["promoted"]
    assert [3, 3] == cells["all", False]["promoted"]
    assert {3} == {cell["trials"] for cell in found["cells"]}
    assert {"mean": 2.0, "se": 0.0} == cells["all", True]["candidate_runs"]
    assert 50.0 == page.pooled(cells["high ones", True])["percent"]


def test_a_rule_is_safe_where_chance_may_have_made_its_wrong_promotes() -> None:
    """Of 400 trials at 7.5 % the standard error is 1.3, at 8 % 1.4: 5 % are two of them away."""
    four = {"mean": 4.0, "se": 0.0}
    runs = {"candidate_runs": four, "baseline_runs": four, "other": four}
    cells = [
        {"rule": rule, "margin": margin, "loses": loses, "trials": 400, "promoted": [n], **runs}
        for rule, wrong in (("chance", 30), ("unsafe", 32))
        for margin, loses, n in ((1, True, wrong), (2, True, 0), (1, False, 300), (2, False, 400))
    ]

    assert "| chance | 7.50 ± 1.32 | 75.0 ± 2.2 | 4 + 4.00 / 4 + 4.00 |" in (
        text := page.BLOCKS["safe"]({"cells": cells})
    )
    assert "unsafe" not in text


def test_a_rule_is_found_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("RULES = {'mine': lambda trial: True}\n")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])

    assert rules().keys() - RULES.keys() == {"mine"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER.replace("licence", "license"), "lacks licence"),
        (HEADER.replace("maximize", "up"), "use maximize or minimize"),
        (HEADER + "group,metric\n", "use group,run,metric"),
        (HEADER + "\n".join(["group,run,metric", *ROWS[1:]]), "at least 20"),
        (HEADER + "\n".join(["group,run,metric", *ROWS[1:], "one,20,nan"]), "finite"),
    ],
)
def test_unusable_data_is_refused_with_what_to_do(text: str, words: str, tmp_path: Path) -> None:
    place = tmp_path / "mine.csv"
    place.write_text(text)

    with pytest.raises(ValueError, match=f"mine.csv: .*{words}"):
        list(read(place))


def test_a_metric_that_is_to_be_small_is_turned(tmp_path: Path) -> None:
    text = HEADER.replace("maximize", "minimize") + "\n".join(["group,run,metric", *ROWS])
    (tmp_path / "mine.csv").write_text(text)

    (group,) = groups(tmp_path)
    assert (-2.0, 0.0) == (group.metrics.min(), group.metrics.max())


def test_the_results_are_of_these_rules_and_data_and_the_page_shows_them() -> None:
    """Where this fails: python -m benchmarks.referee, or --document for the page alone."""
    kept, text = kept_results(), page.PAGE.read_text()

    assert rules_digest() == kept["rules"]
    assert RULES.keys() == {cell["rule"] for cell in kept["cells"]}
    assert [group.name for group in groups()] == [group["name"] for group in kept["groups"]]
    assert kept["judge"] in text
    assert {match["name"] for match in page.BLOCK.finditer(text)} == page.BLOCKS.keys()
    assert page.refreshed(text, kept) == text


@pytest.mark.slow
def test_the_picture_is_drawn_of_the_kept_results(tmp_path: Path) -> None:
    from benchmarks.referee import plots  # noqa: PLC0415 - only this test waits for matplotlib

    plots.draw(kept_results(), tmp_path / "referee.svg")

    assert (tmp_path / "referee.svg").read_bytes() == plots.PICTURE.read_bytes()
