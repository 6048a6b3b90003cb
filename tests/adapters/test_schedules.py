"""Production's schedules against moto's EventBridge Scheduler."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.state_machines import SOON_SECONDS, EventBridgeSchedules, first_time

GROUP = "compilegate-dev"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:compilegate-dev-train"
ROLE = "arn:aws:iam::123456789012:role/scheduler"
NIGHTLY, WEEKLY = "cron(0 3 * * ? *)", "cron(0 3 ? * SUN *)"


@pytest.fixture
def scheduler(aws: None) -> Any:
    client = boto3.client("scheduler")
    client.create_schedule_group(Name=GROUP)
    return client


def schedules(scheduler: Any) -> EventBridgeSchedules:
    return EventBridgeSchedules(scheduler, group=GROUP, machine=MACHINE, role=ROLE)


def stored(scheduler: Any, workload: str = "bert-docs") -> Any:
    return scheduler.get_schedule(Name=workload, GroupName=GROUP)


def test_a_schedule_starts_production_of_its_workload_and_says_for_when(scheduler: Any) -> None:
    """Nightly runs are spread, and tried for hours."""
    schedules(scheduler).put("bert-docs", NIGHTLY)

    schedule = stored(scheduler)
    target = schedule["Target"]
    assert (NIGHTLY, "UTC", "ENABLED") == (
        schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"], schedule["State"],
    )  # fmt: skip
    assert (MACHINE, ROLE) == (target["Arn"], target["RoleArn"])
    assert {
        "workload": "bert-docs", "scheduled": "<aws.scheduler.scheduled-time>",
    } == json.loads(target["Input"])  # fmt: skip
    assert {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15} == schedule["FlexibleTimeWindow"]
    retries = {"MaximumEventAgeInSeconds": 6 * 3600, "MaximumRetryAttempts": 185}
    assert retries == target["RetryPolicy"]


def test_a_schedule_is_replaced_and_removed_as_often_as_asked(scheduler: Any) -> None:
    schedules(scheduler).put("bert-docs", NIGHTLY)
    schedules(scheduler).put("bert-docs", WEEKLY, "Europe/Berlin")

    assert (WEEKLY, "Europe/Berlin") == (
        stored(scheduler)["ScheduleExpression"], stored(scheduler)["ScheduleExpressionTimezone"],
    )  # fmt: skip
    assert 1 == len(scheduler.list_schedules(GroupName=GROUP)["Schedules"])
    for _ in range(2):
        schedules(scheduler).remove("bert-docs")
    assert [] == scheduler.list_schedules(GroupName=GROUP)["Schedules"]
    assert not schedules(scheduler).switch("bert-docs", on=False)
    assert not schedules(scheduler).switch("bert-docs", on=True)


class Refusing:
    """A Scheduler that refuses everything with one code."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __getattr__(self, operation: str) -> Any:
        def refuse(**_: Any) -> None:
            raise ClientError({"Error": {"Code": self._code}}, operation)

        return refuse


def test_what_the_service_refuses_is_not_taken_for_done() -> None:
    """A group that is missing is an error too."""
    for code in ("AccessDeniedException", "ThrottlingException"):
        refused = schedules(Refusing(code))
        for ask, *more in ((refused.put, NIGHTLY), (refused.remove,),
                           (partial(refused.switch, on=True),)):  # fmt: skip
            with pytest.raises(ClientError, match=code):
                ask("bert-docs", *more)
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        schedules(Refusing("ResourceNotFoundException")).put("bert-docs", NIGHTLY)


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

    turn = int.from_bytes(hashlib.sha256(b"bert-docs").digest()) % interval
    assert {turn} == {start % interval for start in starts}
    for later, start in zip(range(0, 3 * interval, interval // 7), starts, strict=True):
        assert NOW + later + 30 <= start < NOW + later + interval + 30


def test_workloads_of_one_rate_do_not_share_a_moment() -> None:
    starts = {first_time(f"job-{index}", "rate(1 day)", NOW)["StartDate"] for index in range(1000)}

    assert len(starts) > 980


def test_a_rate_is_registered_and_enabled_with_its_first_time_a_cron_says_itself(
    scheduler: Any,
) -> None:
    now = [NOW]
    of_one = EventBridgeSchedules(
        scheduler, group=GROUP, machine=MACHINE, role=ROLE, now=lambda: now[0]
    )

    for _ in range(2):  # the second time when the first has long passed
        of_one.switch("bert-docs", on=True) or of_one.put("bert-docs", "rate(1 day)")
        start = stored(scheduler)["StartDate"]
        assert start == first_time("bert-docs", "rate(1 day)", now[0])["StartDate"]
        assert now[0] < start.timestamp() <= now[0] + 86400 + 30
        now[0] += 30 * 86400
    of_one.put("ads", "rate(5 minutes)")  # in a window its runs would swap places
    assert ["FLEXIBLE", "OFF"] == [
        stored(scheduler, name)["FlexibleTimeWindow"]["Mode"] for name in ("bert-docs", "ads")
    ]
    assert {} == first_time("bert-docs", NIGHTLY, NOW)


def test_a_disabled_schedule_keeps_everything_but_its_state(scheduler: Any) -> None:
    both = schedules(scheduler)
    both.put("bert-docs", NIGHTLY, "Europe/Berlin")
    both.put("ads", "rate(7 days)")
    before = stored(scheduler)

    assert both.switch("bert-docs", on=False)

    assert ["ads"] == list(both.enabled())
    after = stored(scheduler)
    assert "DISABLED" == after["State"]
    same = ("ScheduleExpression", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target")
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert both.switch("bert-docs", on=True)
    assert ["ads", "bert-docs"] == sorted(both.enabled())


def test_the_figures_that_these_tests_go_by() -> None:
    assert 30 == SOON_SECONDS
