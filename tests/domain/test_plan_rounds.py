"""How many rounds a trial may take, how long each, and what of an execution's history they need."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import Cluster
from compilegate.domain.planning.estimate import makespan, max_concurrency, waves

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


def test_production_has_three_times_its_schedule_and_two_weeks_within_360_days():
    week, day = 7 * 24 * HOUR, 24 * HOUR
    waits = [
        rounds.production_timeout_seconds(4, 2, 4, elapsed_seconds=days * day) for days in (0, 359)
    ]

    assert [3 * (2 * week + 10 * HOUR) + 2 * week, 23 * HOUR] == waits


def test_a_round_is_begun_where_it_ends_an_hour_before_60_days_are_over():
    last = 60 * 24 * HOUR - HOUR
    assert [True, False] == [rounds.has_time(last - 9, seconds) for seconds in (9, 10)]
    assert last + 2 * HOUR == rounds.LOCK_SECONDS


def test_events_are_those_of_rounds_jobs_and_retries():
    assert 3 * 13 + 2 * 26 + 5 * 3 == rounds.events(3, ["cg-w-t-f0-r2", "cg-w-t-f1-r3"])


def test_one_more_round_has_room_for_all_retries_of_its_jobs():
    longest = 13 + 6 * (26 + 29 * 3)
    fitting = (25_000 - 1_000 - longest) // 13  # to the last event
    assert [True, False] == [rounds.has_room(fitting + more, [], 6) for more in (0, 1)]
    assert not rounds.has_room(fitting - 4, ["cg-w-t-f0-r9"], 6)  # 26 and 27 events, one too many


# Within the account's quotas: how many jobs at once, and how long that takes.


G5, P4 = "ml.g5.48xlarge", "ml.p4d.24xlarge"
SIX = [Cluster(G5, 8)] * 6
CLUSTERS = st.lists(
    st.builds(Cluster, st.sampled_from([G5, P4]), st.integers(1, 16)), min_size=1, max_size=9
)


@pytest.mark.parametrize(
    ("quota", "at_once"), [(8, 1), (15, 1), (16, 2), (47, 5), (48, 6), (None, 1)]
)
def test_as_many_jobs_as_the_quota_holds(quota, at_once):
    assert at_once == max_concurrency(SIX, lambda _: quota)
    assert 40 == max_concurrency([Cluster(G5, 1)] * 41, lambda _: 1000)


def test_each_type_has_a_quota_of_its_own():
    clusters = [Cluster(G5, 8), Cluster(P4, 1), Cluster(G5, 8), Cluster(P4, 1)]

    assert 1 == max_concurrency(clusters, {G5: 8, P4: 64}.get)
    assert 4 == max_concurrency(clusters, {G5: 16, P4: 2}.get)
    assert 2 == max_concurrency([Cluster(G5, 8), Cluster(P4, 1)], {G5: 8, P4: 1}.get)


@given(clusters=CLUSTERS, quota=st.dictionaries(st.sampled_from([G5, P4]), st.integers(16, 64)))
def test_no_choice_of_jobs_that_run_at_once_exceeds_a_quota(clusters, quota):
    """Whichever of them happen to run together; an unknown quota counts as one job's machines."""
    at_once = max_concurrency(clusters, quota.get)

    for kind in (G5, P4):
        sizes = [cluster.instances for cluster in clusters if cluster.instance_type == kind]
        limit = quota.get(kind, max(sizes, default=0))
        for chosen in itertools.combinations(clusters, at_once):
            used = sum(cluster.instances for cluster in chosen if cluster.instance_type == kind)
            assert used <= limit


@given(clusters=CLUSTERS, quota=st.integers(0, 64), more=st.integers(0, 64))
def test_a_larger_quota_never_holds_fewer_jobs(clusters, quota, more):
    small = max_concurrency(clusters, lambda _: quota)

    assert 1 <= small <= max_concurrency(clusters, lambda _: quota + more) <= len(clusters)


@given(hours=st.lists(st.floats(0.01, 100), min_size=1, max_size=12), at_once=st.integers(1, 12))
def test_jobs_in_turn_take_between_their_longest_and_all_of_them(hours, at_once):
    taken = makespan(hours, at_once)

    assert max(hours) <= taken + 1e-9
    assert taken <= math.fsum(hours) + 1e-9
    assert taken <= max(hours) * waves(len(hours), at_once) + 1e-9


def test_the_next_job_starts_as_one_ends():
    assert 6.0 == makespan([3.0, 1.0, 1.0, 4.0], 2)
    assert 4.0 == makespan([3.0, 1.0, 1.0, 4.0], 4)
    assert 9.0 == makespan([3.0, 1.0, 1.0, 4.0], 1)
