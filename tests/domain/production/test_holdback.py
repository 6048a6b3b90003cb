"""Baseline runs beside a permanent promotion: how many, and which."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.production.holdback import holds_back, share_of
from compilegate.domain.workload.model import Workload
from compilegate.usecases.records import read_document
from tests.domain.workload_builder import SOUND, change

WEEK = 7 * 86_400
BEGIN = 1_790_000_000


def job(runs_per_week: float = 3.0, holdback: float = 0.04, name: str = "bert-docs") -> Workload:
    return change(
        SOUND, schedule__runs_per_week=runs_per_week, policy__holdback=holdback, name=name
    )


@pytest.mark.parametrize(
    ("runs_per_week", "holdback", "usd_per_run", "share"),
    [
        # One in seven weeks at least.
        (1, 0.04, 9.0, 0.1429), (3, 0.04, 9.0, 0.0476), (0.5, 0.04, 90.0, 0.2857),
        # Too few runs to tell anything.
        (0.49, 0.04, 90.0, 0.0), (0.25, 0.5, None, 0.0),
        # A saving of $50 a year.
        (1, 0.2, 50 / 52, 0.2), (1, 0.2, 49.9 / 52, 0.0),
        (2, 0.2, 25 / 52, 0.2), (1, 0.2, None, 0.2),
        (24, 0.0, 9.0, 0.0), (24, 0.0, None, 0.0),
    ],
)  # fmt: skip
def test_the_share_pays_for_itself(runs_per_week, holdback, usd_per_run, share):
    assert share == share_of(job(runs_per_week, holdback), usd_per_run)


def held(workload: Workload, weeks: int, share: float | None = None) -> list[float]:
    """When runs were held back, with one whenever the schedule says."""
    gap = WEEK / workload.schedule.runs_per_week
    times = [BEGIN + place * gap for place in range(round(weeks * WEEK / gap))]
    found: list[float] = []
    for before, at in pairwise(times):
        run = naming.trial_id(round(1000 * at))
        if holds_back(
            workload, share, run=run, at=at, last=before, last_on_baseline=before in found
        ):
            found.append(at)
    return found


@given(st.integers(0, 10**6), st.floats(0.5, 40), st.floats(0.01, 0.3))
def test_two_are_at_most_eight_weeks_and_two_runs_apart(name, runs_per_week, holdback):
    workload = job(runs_per_week, holdback, f"w{name}")
    times = [BEGIN, *held(workload, 40), BEGIN + 40 * WEEK]

    gap = WEEK / runs_per_week
    assert all(later - earlier <= 8 * WEEK + 2 * gap for earlier, later in pairwise(times))
    assert held(workload, 40) == held(workload, 40, share=0.2)


@pytest.mark.parametrize(("runs_per_week", "holdback"), [(1, 0.04), (3, 0.04), (7, 0.2)])
def test_as_many_are_held_back_as_the_share_says(runs_per_week, holdback):
    workload = job(runs_per_week, holdback)
    runs = 2000 * runs_per_week

    share = share_of(workload, None)
    assert len(held(workload, 2000)) / runs == pytest.approx(share, rel=0.1)


def test_nothing_is_held_back_where_the_team_or_the_flag_says_so():
    assert [] == held(job(holdback=0.0), 100)
    assert [] == held(job(holdback=0.3), 100, share=0.0)


def test_a_document_without_a_share_of_its_own_is_one_that_0_2_0_reads():
    assert "holdback" not in SOUND.to_dict()["policy"]
    assert [0.0, 0.1] == [job(holdback=of).to_dict()["policy"]["holdback"] for of in (0.0, 0.1)]
    assert job(holdback=0.1) == read_document(job(holdback=0.1).to_dict())
