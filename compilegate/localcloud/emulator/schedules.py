"""Fires EventBridge Scheduler's schedules as AWS does, in place of ministack's own sweep.

Pinned to ministack 1.5.33, whose sweep knows UTC only, hands ``<aws.scheduler.scheduled-time>``
to the target as it stands, says the time of the sweep where the schedule's is meant, looks every
ten seconds only, and never fires a schedule again that was deleted and created anew.
"""

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

LOOK_SECONDS = 1
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
log = logging.getLogger("compilegate.emulator")


def install() -> None:
    """Look every second, with this module's sweep."""
    scheduler._SCHEDULE_TICK_INTERVAL = LOOK_SECONDS
    scheduler._tick_schedules = Sweep().look


@dataclass
class _Known:
    """A schedule as it was last seen; ``due`` is the epoch second of its next time, or None."""

    written: tuple[Any, ...]
    due: float | None


class Sweep:
    """Remembers when each schedule is due next, so that a look at thousands costs little."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._known: dict[Any, _Known] = {}

    def look(self) -> None:
        """Fire what is due; what was missed while the machine slept is not caught up on."""
        now = self._clock()
        present = dict(scheduler._schedules._data)
        for key in self._known.keys() - present.keys():
            del self._known[key]
        for key, schedule in present.items():
            known = self._watched(key, schedule)
            if known.due is None or now < known.due or not _is_open(schedule, now):
                continue
            scheduled = known.due
            known.due = next_time(schedule, max(now, scheduled))
            _fire(key, schedule, scheduled)
            if known.due is None and schedule.get("ActionAfterCompletion") == "DELETE":
                scheduler._schedules._data.pop(key, None)

    def _watched(self, key: Any, schedule: Mapping[str, Any]) -> _Known:
        written = (schedule["CreationDate"], schedule["LastModificationDate"])
        known = self._known.get(key)
        if known is None or known.written != written:
            known = self._known[key] = _Known(written, _first_time(schedule))
        return known


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
    found = eventbridge._cron_next_fire(fields, since)
    return None if found is None else float(found.timestamp())


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
