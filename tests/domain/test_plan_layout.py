"""Rounds within the account's quotas: how many jobs at once, and how long that takes."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.planning.arms import Cluster
from compilegate.domain.planning.estimate import (
    MOST_AT_ONCE,
    makespan,
    max_concurrency,
    unlimited,
    waves,
)

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


def test_each_type_has_a_quota_of_its_own():
    clusters = [Cluster(G5, 8), Cluster(P4, 1), Cluster(G5, 8), Cluster(P4, 1)]

    assert 1 == max_concurrency(clusters, {G5: 8, P4: 64}.get)
    assert 4 == max_concurrency(clusters, {G5: 16, P4: 2}.get)
    assert 2 == max_concurrency([Cluster(G5, 8), Cluster(P4, 1)], {G5: 8, P4: 1}.get)


def test_an_inline_map_runs_forty_at_once():
    assert MOST_AT_ONCE == max_concurrency([Cluster(G5, 1)] * 50, unlimited)


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
