"""The simulated probation: figures in bands, and the page that shows the kept ones."""

import pytest

from benchmarks.decision.probation import REFRESHES, Cell, run
from compilegate.domain.followers import REFRESH_EVERY

MANY = 60


def reverted(condition, spread=0.6, refresh=REFRESH_EVERY):
    return run(Cell(condition, spread, refresh), MANY, jobs=1)["reverted"]["percent"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "spread", "low", "high"),
    [
        ("clean", 0.6, 0, 3.4),
        ("clean", 1.0, 0, 5),
        ("nights", 1.0, 0, 7),
        ("loss", 0.6, 88, 100),
        ("loss", 1.0, 60, 90),
        ("loss75", 0.6, 60, 88),
        ("loss2", 1.0, 95, 100),
        ("late", 0.6, 95, 100),
        ("slow", 1.0, 98, 100),
        ("grows", 1.0, 0, 10),
        ("step", 0.6, 0, 12),
    ],
)
def test_the_watch_errs_and_finds_within_these_bands(condition, spread, low, high):
    assert low <= reverted(condition, spread) <= high


@pytest.mark.slow
def test_a_loss_that_better_data_hides_is_found_only_with_baseline_runs_of_today():
    assert reverted("masked", refresh=0) + 10 < reverted("masked")


def test_a_regression_of_two_margins_exposes_few_runs():
    result = run(Cell("loss2", 0.6, REFRESH_EVERY), MANY, jobs=1)

    assert result["exposed"] <= 6
    assert result["open"] == 0


def test_what_production_does_is_among_what_was_measured():
    assert REFRESH_EVERY in REFRESHES
