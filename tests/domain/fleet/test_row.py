"""A row: one workload's ledger at a glance."""

from __future__ import annotations

import json

import pytest

from compilegate.domain import codec
from compilegate.domain.fleet.month import Amount, Estimate
from compilegate.domain.fleet.row import (
    Closed,
    DayOfRuns,
    LastRun,
    Need,
    Row,
    RowFlag,
)
from compilegate.domain.production.history import DAY_SECONDS

FULL = Row(
    workload="bert-docs",
    owner="nlp",
    registered=True,
    active=True,
    flag=RowFlag(
        "stale", enabled=False, candidate="compile", since=1_790_000_000, version=3, followed_at=9
    ),
    phase="canary",
    trial="t1abcdef",
    phase_since=1_790_000_100,
    instance="ml.g5.2xlarge",
    instances=2,
    image="pytorch 2.8.0",
    family="transformer",
    runs_per_week=3.5,
    last_run=LastRun(at=1_790_000_200, arm="compile", ok=False),
    days=(DayOfRuns(20_717, 3, 1), DayOfRuns(20_716, 2, 2)),
    saved=Estimate(140, 420_500_000, 31_000_000, unknown=2),
    baseline_at=1_789_500_000,
    trials=Amount(2, 91_200_000, unknown=1),
    needs=(Need("stale", 1_790_000_000), Need("failed", 1_790_000_200)),
    stale=("instance_type",),
    unread=4,
    closed=Closed("2026-10", Estimate(3, 5)),
    upto={"run": "run#r1#j1", "flag": "flag#00000003"},
    read_at=1_790_000_300,
)


@pytest.mark.parametrize("row", [FULL, Row("new")], ids=["full", "new"])
def test_a_row_is_read_as_it_was_written(row):
    assert row == codec.read(Row, json.loads(json.dumps(codec.write(row))))


def test_a_week_is_today_and_the_six_days_before():
    today = 20_717 * DAY_SECONDS

    assert (5, 3) == FULL.week(today) == FULL.week(today + 6 * DAY_SECONDS - 1)
    assert (3, 1) == FULL.week(today + 6 * DAY_SECONDS)
    assert (0, 0) == FULL.week(today + 7 * DAY_SECONDS)


def test_a_need_is_due_from_its_time_on():
    assert ["stale"] == [need.code for need in FULL.due(1_790_000_199)]
    assert ["stale", "failed"] == [need.code for need in FULL.due(1_790_000_200)]
