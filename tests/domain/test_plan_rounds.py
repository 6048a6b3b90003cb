"""How many rounds a trial may take, how long each, and what of an execution's history they need."""

from __future__ import annotations

import pytest

from compilegate.domain.planning import rounds

HOUR = 3600


def test_rounds_grow_with_candidates_and_with_the_runs_that_production_may_make_of_each():
    assert [20, 32, 52] == [rounds.max_rounds(*of) for of in ((1,), (2,), (2, 10))]


@pytest.mark.parametrize(
    ("hours", "arms", "blocks", "longest"),
    [(24, 2, 2, 6 * HOUR), (24, 3, 2, 9 * HOUR), (24, 2, 5, 12 * HOUR), (2, 2, 2, 2 * HOUR)],
)
def test_a_speed_job_has_the_time_of_its_segments_and_of_a_first_compilation_of_each_arm(
    hours, arms, blocks, longest
):
    assert longest == rounds.speed_job_seconds(hours, arms=arms, blocks=blocks)


def test_each_wave_of_a_round_may_wait_for_quota_queue_and_train():
    quota = 5_110 + 15 * HOUR  # from ten seconds on twice as long each time, then hours
    assert 3 * (quota + 6 * HOUR + 4 * HOUR) == rounds.round_seconds(4, 3)


def test_events_are_those_of_rounds_jobs_and_retries():
    assert 3 * 13 + 2 * 26 + 5 * 3 == rounds.events(3, ["cg-w-t-f0-r2", "cg-w-t-f1-r3"])


def test_one_more_round_has_room_for_all_retries_of_its_jobs():
    longest = 13 + 6 * (26 + 29 * 3)
    fitting = (25_000 - 1_000 - longest) // 13  # to the last event
    assert [True, False] == [rounds.has_room(fitting + more, [], 6) for more in (0, 1)]
