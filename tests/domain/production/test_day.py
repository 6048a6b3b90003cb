"""The figures of a day, against a ledger whose figures are known."""

from collections import Counter

import pytest

from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.production import ProbationEnd
from compilegate.domain.records.trials import TrialFailed
from tests.fakes import services
from tests.usecases.production_ledger import (
    DAY,
    NOW,
    decided,
    promote,
    ran,
    write,
)

TODAY = NOW - DAY


@pytest.fixture
def cloud():
    return services()


def figures(cloud):
    return day_of(cloud.ledger.history("w"), since=TODAY, until=NOW)


def test_a_day_without_entries_has_no_figures(cloud):
    assert DayFigures() == figures(cloud)


def test_decisions_are_counted_by_verdict_with_what_their_trials_cost(cloud):
    for record in (
        decided("a", TODAY, spent_usd=12.5),
        decided("b", NOW - 1, "ineligible"),
        ProbationEnd(NOW - 1, "a", "r", "d", None, None, "revert", "compile", "1", ()),
        TrialFailed(NOW - 1, "c"),
        decided("d", TODAY - 1, spent_usd=12.5),
        decided("e", NOW, spent_usd=12.5),
    ):
        write(cloud, "w", record)

    day = figures(cloud)
    assert {"promote": 1, "ineligible": 1, "revert": 1, "failed": 1} == day.decisions
    assert 12.5 == day.trial_usd


def test_runs_of_the_day_are_priced_and_compared_with_earlier_baselines(cloud):
    promote(cloud, "w", NOW - 3 * DAY)
    for day in (3, 2):
        ran(cloud, "w", NOW - day * DAY, "baseline", usd=10.0)
    ran(cloud, "w", NOW - 1.5 * DAY, "compile", usd=7.0)  # yesterday's
    ran(cloud, "w", NOW - 7200, "compile", usd=7.0)
    ran(cloud, "w", NOW - 3600, "compile", usd=4.0, finished=False)

    day = figures(cloud)
    assert (2, 1) == (day.production_runs, day.failed_runs)
    assert pytest.approx(11.0) == day.production_usd
    assert pytest.approx(3.0 - 4.0) == day.saved_usd


def test_workloads_add_up():
    one = DayFigures(Counter("a"), 1.0, 2, 1, 0, 3.0, -1.0, 1)
    two = DayFigures(Counter("ab"), 0.5, 1, 0, 1, 1.0, 4.0, 0)

    expected = DayFigures(Counter("aab"), 1.5, 3, 1, 1, 4.0, 3.0, 1)
    assert expected == one + two
