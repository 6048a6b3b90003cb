"""The figures of a day, against a ledger whose figures are known."""

from collections import Counter
from dataclasses import replace

import pytest

from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.production import ProbationEnd, ProductionRun
from compilegate.domain.records.trials import TrialFailed
from tests.fakes import services
from tests.usecases.production_ledger import (
    DAY,
    NOW,
    OFF,
    ON,
    decided,
    flag_entry,
    promote,
    ran,
    waited,
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


def test_a_day_has_its_first_second_and_not_the_next_days(cloud):
    flag_entry(cloud, "w", 1, TODAY - 5, OFF, OFF)
    for name, at, usd in (("a", TODAY - 1, 1.0), ("b", TODAY, 2.0), ("c", NOW - 1, 4.0),
                          ("d", NOW, 8.0)):  # fmt: skip
        ran(cloud, "w", at, "baseline", usd=usd)
        write(cloud, "w", TrialFailed(int(at), name, spent_usd=usd))
        write(cloud, "w", waited(name, 0, at))
        write(cloud, "w", waited(name, 1, at))
        end = ProbationEnd(int(at), name, "r", "d", None, None, "revert", "compile", "1", ())
        write(cloud, "w", end)
    flag_entry(cloud, "w", 2, NOW, ON, OFF)
    write(cloud, "w", replace(run_without_price(), at=int(NOW - 2)))

    day = figures(cloud)
    assert {"failed": 2, "revert": 2} == day.decisions
    assert (3, 0, 2) == (day.production_runs, day.failed_runs, day.waited_runs)
    assert (6.0, 6.0, 0) == (day.trial_usd, day.production_usd, day.flags_on)
    assert 1 == day_of(cloud.ledger.history("w"), since=TODAY, until=NOW + 1).flags_on


def run_without_price():
    return ProductionRun(
        "unpriced", "j", "baseline", NOW - 9.0, NOW - 2.0, {"finished": True}, True, "flag"
    )


def test_workloads_add_up():
    one = DayFigures(Counter("a"), 1.0, 2, 1, 0, 3.0, -1.0, 1)
    two = DayFigures(Counter("ab"), 0.5, 1, 0, 1, 1.0, 4.0, 0)

    expected = DayFigures(Counter("aab"), 1.5, 3, 1, 1, 4.0, 3.0, 1)
    assert expected == one + two
