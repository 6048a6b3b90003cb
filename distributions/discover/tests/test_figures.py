"""Schedule, metric and utilization as figures of a group."""

from __future__ import annotations

import pytest

from compilegate.facts import load_facts
from compilegate_discover.account import Account, Pace
from compilegate_discover.figures import figures_of, metric_of
from compilegate_discover.grouping import Group
from distributions.discover.tests.cloud import AccountInMemory
from distributions.discover.tests.jobs import NOW, REGION, read, record


def group(*records):
    jobs = sorted(read(*records), key=lambda job: job.created)
    return Group("docs", tuple(jobs), ())


def figures(*records, usd=2.0):
    return figures_of(group(*records), lambda _: usd, now=NOW.timestamp())


def weekly(**changes):
    return [record(f"docs-{week}", 7 * week + 3, **changes) for week in range(10)]


def test_a_job_of_each_monday():
    found = figures(*weekly())
    assert (1.0, "about 20:00 UTC, Mondays") == (found.runs_per_week, found.starts)
    assert (False, pytest.approx(2.0 * 52)) == (found.ended, found.usd_per_year)


@pytest.mark.parametrize(("days", "ended"), [(20, False), (22, True)])
def test_a_workload_has_ended_after_three_gaps(days, ended):
    found = figures(*(record(f"docs-{week}", 7 * week + days) for week in range(5)))
    assert (ended, ended) == (found.ended, found.usd_per_year is None)


@pytest.mark.parametrize(("days", "ended"), [(44, False), (46, True)])
def test_one_run_has_no_schedule_and_ends_after_a_while(days, ended):
    found = figures(record("docs", days))
    assert (None, None, ended) == (found.runs_per_week, found.usd_per_year, found.ended)


def test_nodes_groups_and_a_job_that_still_runs_are_counted_as_billed():
    groups = [
        {"InstanceGroupName": name, "InstanceType": "ml.g5.xlarge", "InstanceCount": 3}
        for name in ("a", "b")
    ]
    found = figures(
        record("a", 9, resources={"InstanceCount": 4}, BillableTimeInSeconds=1800),
        record("b", 8, resources={"InstanceGroups": groups}),
        record("c", 0.01, BillableTimeInSeconds=None, TrainingJobStatus="InProgress"),
    )
    assert pytest.approx(2.0 * (4 / 2 + 6)) == found.usd_seen


def test_history_is_of_the_newest_image_and_settings_and_gives_the_margin():
    def with_metrics(name, days, value, **changes):
        metrics = [("train_acc", 0.99), ("val_loss", value), ("misc", 1.0)]
        return record(name, days, **changes, FinalMetricDataList=[
            {"MetricName": key, "Value": number, "Timestamp": NOW} for key, number in metrics
        ])  # fmt: skip

    jobs = [with_metrics(f"docs-{day}", 9 - day, 1.0 + day % 2 / 10) for day in range(8)]
    jobs[0] = with_metrics("docs-0", 9, 5.0, settings={"epochs": "9"})
    metric = metric_of(group(*jobs))
    assert ("val_loss", "minimize", 7) == (metric.name, metric.goal, len(metric.history))
    assert pytest.approx(0.11, abs=0.005) == metric.margin
    assert metric_of(group(*jobs[:5])).margin is None
    assert metric_of(group(record("docs", 1))) is None


def test_utilization_is_of_one_gpu_and_by_points_that_are_kept():
    eight = {"resources": {"InstanceType": "ml.g5.48xlarge"}}
    days = {"new": 1, "old": 30, "older": 80}
    made = {name: group(record(name, ago, **eight)) for name, ago in days.items()}
    cloud = AccountInMemory(
        {REGION: [record(name, ago, **eight) for name, ago in days.items()]},
        busy=dict.fromkeys(days, 400.0),
    )
    pace = Pace(sleep=lambda _: None)
    account = Account(cloud.client, 10, pace)
    found = account.measured([*made.values()], load_facts(), REGION, NOW)
    assert {(0.5, 12.0, 1)} == {
        (one.gpu_utilization, one.peak_memory_gib, one.runs) for one in found.values()
    }
    periods = [
        request["MetricDataQueries"][0]["MetricStat"]["Period"] for _, request in cloud.calls
    ]
    assert [60, 300, 3600] == sorted(periods)


def test_calls_keep_their_pace():
    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(lambda: now[0], sleep)
    for _ in range(11):
        pace.wait(5.0)
    assert pytest.approx(2.0) == sum(slept)
