"""A row: one workload's ledger at a glance."""

from __future__ import annotations

from compilegate.domain.fleet.row import DayOfRuns, Need, Row
from compilegate.domain.production.history import DAY_SECONDS

ROW = Row(
    workload="bert-docs",
    days=(DayOfRuns(20_717, 3, 1), DayOfRuns(20_716, 2, 2)),
    needs=(Need("stale", 1_790_000_000), Need("failed", 1_790_000_200)),
)


def test_a_week_is_today_and_the_six_days_before():
    today = 20_717 * DAY_SECONDS

    assert (5, 3) == ROW.week(today) == ROW.week(today + 6 * DAY_SECONDS - 1)
    assert (3, 1) == ROW.week(today + 6 * DAY_SECONDS)
    assert (0, 0) == ROW.week(today + 7 * DAY_SECONDS)


def test_a_need_is_due_from_its_time_on():
    assert ["stale"] == [need.code for need in ROW.due(1_790_000_199)]
    assert ["stale", "failed"] == [need.code for need in ROW.due(1_790_000_200)]
