"""How long a run waits for machines, and on which it trains meanwhile."""

from __future__ import annotations

import pytest

from compilegate.domain.production.attempts import (
    LONGEST_SECONDS,
    Wait,
    most_wait_seconds,
    next_wait,
)
from compilegate.domain.records.runs import CapacityWait
from tests.domain.workload_builder import SOUND, change

DAY = 24 * 3600


def waited(seconds, spent=0.0):
    return CapacityWait(0, "r", 0, "j", "compile", None, spent, seconds, None)


def waits(most, *fallbacks, spent=0.0):
    """Every wait until the run gives up."""
    entries, found = [], []
    while (wait := next_wait(entries, fallbacks, most)) is not None:
        found.append(wait)
        entries.append(waited(wait.seconds, spent))
        assert len(entries) < 1000
    return found


def test_pauses_double_from_five_minutes_to_an_hour_and_end_within_the_bound():
    seconds = [wait.seconds for wait in waits(DAY)]

    assert [300, 600, 1200, 2400, 3600, 3600] == seconds[:6]
    assert LONGEST_SECONDS == max(seconds)
    assert DAY - LONGEST_SECONDS < sum(seconds) <= DAY


def test_other_types_are_tried_at_once_and_the_own_one_again_after_each_pause():
    found = waits(2000, "ml.a", "ml.b")

    cycle = [Wait(0, "ml.a"), Wait(0, "ml.b")]
    assert [*cycle, Wait(300), *cycle, Wait(600), *cycle] == found


def test_no_time_to_wait_still_tries_the_other_types():
    assert [Wait(0, "ml.a")] == waits(0, "ml.a")
    assert [] == waits(0)


def test_hours_that_an_attempt_itself_waited_count():
    assert 1 == len(waits(DAY, spent=DAY))


def test_a_first_pause_may_be_given():
    assert Wait(1) == next_wait([], (), DAY, first_seconds=1)
    given = [waited(1)]
    assert Wait(2) == next_wait(given, (), DAY, first_seconds=1)
    assert Wait(7200) == next_wait([], (), DAY, first_seconds=7200)


@pytest.mark.parametrize(
    ("per_week", "hours", "expected"), [(3, None, 24), (14, None, 12), (14, 2, 2), (3, 100, 100)]
)
def test_the_bound_is_the_teams_else_the_next_run_at_most_a_day(per_week, hours, expected):
    workload = change(SOUND, schedule__runs_per_week=per_week, schedule__max_wait_hours=hours)

    assert pytest.approx(expected * 3600) == most_wait_seconds(workload)
