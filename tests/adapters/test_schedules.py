"""Production's schedules against moto's EventBridge Scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from compilegate.adapters.state_machines import SOON_SECONDS, EventBridgeSchedules, first_time

GROUP = "compilegate-dev"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:compilegate-dev-train"
ROLE = "arn:aws:iam::123456789012:role/scheduler"
NIGHTLY, WEEKLY = "cron(0 3 * * ? *)", "cron(0 3 ? * SUN *)"


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("scheduler", region_name="us-east-1")
        client.create_schedule_group(Name=GROUP)
        yield client


def schedules(scheduler: Any) -> EventBridgeSchedules:
    return EventBridgeSchedules(scheduler, group=GROUP, machine=MACHINE, role=ROLE)


def stored(scheduler: Any, workload: str = "bert-docs") -> Any:
    return scheduler.get_schedule(Name=workload, GroupName=GROUP)


def test_a_schedule_starts_production_of_its_workload_and_says_for_when(scheduler: Any) -> None:
    schedules(scheduler).put("bert-docs", NIGHTLY)

    schedule = stored(scheduler)
    assert (NIGHTLY, "UTC", "ENABLED") == (
        schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"], schedule["State"],
    )  # fmt: skip
    assert (MACHINE, ROLE) == (schedule["Target"]["Arn"], schedule["Target"]["RoleArn"])
    assert {
        "workload": "bert-docs", "scheduled": "<aws.scheduler.scheduled-time>",
    } == json.loads(schedule["Target"]["Input"])  # fmt: skip


def test_a_schedule_is_read_in_its_zone(scheduler: Any) -> None:
    schedules(scheduler).put("bert-docs", NIGHTLY, "Europe/Berlin")

    assert "Europe/Berlin" == stored(scheduler)["ScheduleExpressionTimezone"]


def test_a_schedule_that_is_there_is_replaced(scheduler: Any) -> None:
    schedules(scheduler).put("bert-docs", NIGHTLY)
    schedules(scheduler).put("bert-docs", WEEKLY)

    assert WEEKLY == stored(scheduler)["ScheduleExpression"]
    assert 1 == len(scheduler.list_schedules(GroupName=GROUP)["Schedules"])


def test_a_removed_schedule_is_gone_and_removing_it_again_is_harmless(scheduler: Any) -> None:
    schedules(scheduler).put("bert-docs", NIGHTLY)

    schedules(scheduler).remove("bert-docs")
    schedules(scheduler).remove("bert-docs")

    assert [] == scheduler.list_schedules(GroupName=GROUP)["Schedules"]


def test_nightly_runs_are_spread_and_tried_for_hours(scheduler: Any) -> None:
    schedules(scheduler).put("bert-docs", NIGHTLY)

    schedule = stored(scheduler)
    assert {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15} == schedule["FlexibleTimeWindow"]
    retries = {"MaximumEventAgeInSeconds": 6 * 3600, "MaximumRetryAttempts": 185}
    assert retries == schedule["Target"]["RetryPolicy"]


@pytest.mark.parametrize("expression", ["rate(1 minute)", "rate(30 minutes)"])
def test_what_comes_every_few_minutes_keeps_its_moment(scheduler: Any, expression: str) -> None:
    schedules(scheduler).put("bert-docs", expression)

    assert {"Mode": "OFF"} == stored(scheduler)["FlexibleTimeWindow"]


class Refusing:
    """A Scheduler that refuses everything with one code."""

    def __init__(self, code: str) -> None:
        self._code = code

    def create_schedule(self, **request: Any) -> None:
        raise ClientError({"Error": {"Code": self._code}}, "CreateSchedule")

    def delete_schedule(self, **request: Any) -> None:
        raise ClientError({"Error": {"Code": self._code}}, "DeleteSchedule")


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_what_the_service_refuses_is_not_taken_for_done(code: str) -> None:
    with pytest.raises(ClientError, match=code):
        schedules(Refusing(code)).put("bert-docs", NIGHTLY)
    with pytest.raises(ClientError, match=code):
        schedules(Refusing(code)).remove("bert-docs")


def test_a_group_that_is_missing_is_an_error_not_a_schedule() -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        schedules(Refusing("ResourceNotFoundException")).put("bert-docs", NIGHTLY)


def test_another_machine_or_role_is_another_target(scheduler: Any) -> None:
    other = EventBridgeSchedules(scheduler, group=GROUP, machine=MACHINE, role=f"{ROLE}-2")

    assert schedules(scheduler).target != other.target


NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC


@pytest.mark.parametrize(
    ("expression", "interval"),
    [("rate(7 days)", 604_800), ("rate(1 hour)", 3600), ("rate(5 minutes)", 300)],
)
def test_a_rate_keeps_its_turn_however_often_it_is_registered(
    expression: str, interval: int
) -> None:
    starts = [
        first_time("bert-docs", expression, NOW + later)["StartDate"].timestamp()
        for later in range(0, 3 * interval, interval // 7)
    ]

    assert 1 == len({start % interval for start in starts})
    for later, start in zip(range(0, 3 * interval, interval // 7), starts, strict=True):
        assert NOW + later < start <= NOW + later + interval + 30


def test_workloads_of_one_rate_do_not_share_a_moment() -> None:
    starts = {first_time(f"job-{index}", "rate(1 day)", NOW)["StartDate"] for index in range(1000)}

    assert len(starts) > 980


def test_a_cron_says_itself_when_it_begins() -> None:
    assert {} == first_time("bert-docs", NIGHTLY, NOW)


def test_a_rate_is_registered_with_its_first_time(scheduler: Any) -> None:
    schedules = EventBridgeSchedules(
        scheduler, group=GROUP, machine=MACHINE, role=ROLE, now=lambda: NOW
    )

    schedules.put("bert-docs", "rate(7 days)")

    start = scheduler.get_schedule(Name="bert-docs", GroupName=GROUP)["StartDate"]
    assert start == first_time("bert-docs", "rate(7 days)", NOW)["StartDate"]


def test_a_disabled_schedule_keeps_everything_but_its_state(scheduler: Any) -> None:
    both = schedules(scheduler)
    both.put("bert-docs", NIGHTLY, "Europe/Berlin")
    both.put("ads", "rate(7 days)")
    before = stored(scheduler)

    assert both.disable("bert-docs")

    assert ["ads"] == list(both.enabled())
    after = stored(scheduler)
    assert "DISABLED" == after["State"]
    same = ("ScheduleExpression", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target")
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert both.enable("bert-docs")
    assert ["ads", "bert-docs"] == sorted(both.enabled())


def test_a_rate_that_is_enabled_again_begins_in_the_future(scheduler: Any) -> None:
    now = [1_790_000_000.0]
    schedules = EventBridgeSchedules(
        scheduler, group=GROUP, machine=MACHINE, role=ROLE, now=lambda: now[0]
    )
    schedules.put("bert-docs", "rate(1 day)")
    now[0] += 30 * 86400

    schedules.enable("bert-docs")

    assert now[0] < stored(scheduler)["StartDate"].timestamp() <= now[0] + 86400 + 30


def test_a_schedule_that_is_gone_has_no_state(scheduler: Any) -> None:
    assert not schedules(scheduler).disable("bert-docs")
    assert not schedules(scheduler).enable("bert-docs")


def test_the_figures_that_these_tests_go_by() -> None:
    assert 30 == SOON_SECONDS
