"""Fires EventBridge Scheduler's schedules as AWS does, in place of ministack's own sweep."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from ministack.core.responses import (
    get_account_id,
    get_region,
    set_request_account_id,
    set_request_region,
)
from ministack.services import eventbridge, scheduler

from compilegate_localcloud.emulator.replacements import replace

SWEEP_SECONDS = 1
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
log = logging.getLogger("compilegate.emulator")


def install() -> None:
    """Sweep every second, with this module's sweep."""
    replace("ministack.services.scheduler._SCHEDULE_TICK_INTERVAL", SWEEP_SECONDS)
    replace("ministack.services.scheduler._tick_schedules", Sweep().fire_due)


@dataclass
class _Watched:
    """A schedule in one version; ``due`` is the epoch second of its next time, or None."""

    version: tuple[Any, ...]
    due: float | None


class Sweep:
    """Remembers when each schedule is due next, so that a sweep over thousands costs little."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._watched: dict[Any, _Watched] = {}

    def fire_due(self) -> None:
        """Fire what is due; what was missed while the machine slept is not caught up on."""
        now = self._clock()
        schedules = dict(scheduler._schedules._data)
        for key in self._watched.keys() - schedules.keys():
            del self._watched[key]
        for key, schedule in schedules.items():
            watched = self._watch(key, schedule)
            if watched.due is None or now < watched.due or not _is_open(schedule, now):
                continue
            scheduled = watched.due
            watched.due = next_time(schedule, max(now, scheduled))
            _fire(key, schedule, scheduled)
            if watched.due is None and schedule.get("ActionAfterCompletion") == "DELETE":
                scheduler._schedules._data.pop(key, None)

    def _watch(self, key: Any, schedule: Mapping[str, Any]) -> _Watched:
        version = (schedule["CreationDate"], schedule["LastModificationDate"])
        watched = self._watched.get(key)
        if watched is None or watched.version != version:
            watched = self._watched[key] = _Watched(version, _first_time(schedule))
        return watched


def _first_time(schedule: Mapping[str, Any]) -> float | None:
    """AWS refuses an expression or zone that is none when the schedule is made; here it rests."""
    try:
        return next_time(schedule, None)
    except (ValueError, KeyError):
        log.exception("the schedule %s cannot be read", schedule["Name"])
        return None


def next_time(schedule: Mapping[str, Any], after: float | None) -> float | None:
    """Epoch second of the schedule's next time later than ``after``, None for no more.

    Without ``after`` the first one since the schedule was written, and a moment that has passed
    when it was: AWS starts that at once, as it does a rate without a start date.
    """
    expression, written = schedule["ScheduleExpression"], schedule["LastModificationDate"]
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    once = _AT.fullmatch(expression)
    if once:
        moment = datetime.fromisoformat(once[1]).replace(tzinfo=zone).timestamp()
        return moment if after is None else None
    interval = eventbridge._parse_rate_seconds(expression)
    if interval is not None:
        anchor = scheduler._to_epoch(schedule.get("StartDate")) or written
        count = 0 if after is None else max((after - anchor) // interval + 1, 0)
        return float(anchor + count * interval)
    fields = eventbridge._parse_cron_fields(expression)
    if fields is None:
        return None
    since = datetime.fromtimestamp(written if after is None else after, tz=zone)
    moment = eventbridge._cron_next_fire(fields, since)
    return None if moment is None else float(moment.timestamp())


def _is_open(schedule: Mapping[str, Any], now: float) -> bool:
    start = scheduler._to_epoch(schedule.get("StartDate"))
    end = scheduler._to_epoch(schedule.get("EndDate"))
    enabled = schedule.get("State") == "ENABLED"
    return enabled and (start is None or start <= now) and (end is None or now <= end)


def _fire(key: tuple[str, str, str], schedule: Mapping[str, Any], scheduled: float) -> None:
    """Hand the target its input, in the account and region of the schedule."""
    account, region, _ = key
    before = get_account_id(), get_region()
    try:
        set_request_account_id(account)
        set_request_region(region)
        target = {**schedule["Target"]}
        if "Input" in target:
            target["Input"] = with_attributes(target["Input"], schedule, scheduled)
        eventbridge._invoke_target(target, _event(key, schedule, scheduled), schedule)
    except Exception:  # one schedule that fails must not end the sweep
        log.exception("the schedule %s could not start its target", schedule["Name"])
    finally:
        set_request_account_id(before[0])
        set_request_region(before[1])


def with_attributes(text: str, schedule: Mapping[str, Any], scheduled: float) -> str:
    """A target's input with Scheduler's context attributes filled in.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
    """
    values = {
        "schedule-arn": schedule["Arn"],
        "scheduled-time": datetime.fromtimestamp(scheduled, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "execution-id": uuid.uuid4().hex[:16],
        "attempt-number": "1",
    }
    for name, value in values.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text


def _event(key: tuple[str, str, str], schedule: Mapping[str, Any], scheduled: float) -> Any:
    """What a target without an input gets."""
    account, region, _ = key
    return {
        "EventId": str(uuid.uuid4()),
        "Source": "aws.scheduler",
        "DetailType": "Scheduled Event",
        "Detail": "{}",
        "Time": scheduled,
        "Resources": [schedule["Arn"]],
        "Account": account,
        "Region": region,
    }
