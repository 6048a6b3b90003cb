"""Schedule expressions as EventBridge Scheduler reads them.

Fields and wildcards: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

DAILY = "cron(0 3 * * ? *)"
UTC = "UTC"
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
UNIX_FIELDS = 5

# Whether there is such a zone, only a list of them can say (adapters/workload_files.py).
_ZONE = re.compile(r"[A-Za-z][\w+-]*(/[\w+-]+){0,2}", re.ASCII)
_UNIX = re.compile(r"[\d*/,A-Za-z-]+")
_CRON = re.compile(r"cron\(([^()]*)\)")
_RATE = re.compile(r"rate\([1-9]\d{0,5} (minutes?|hours?|days?)\)")
# What these fields hold beside lists and ranges.
_SPECIAL = {
    "day of month": re.compile(r"\?|L|LW|([1-9]|[12]\d|3[01])W"),
    "day of week": re.compile(r"\?|L|([1-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(L|#[1-5])"),
}
# Name of each field, its lowest and highest number, and the words for numbers from the lowest.
_FIELDS: tuple[tuple[str, int, int, Sequence[str]], ...] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of week", 1, 7, DAYS),
    ("year", 1970, 2199, ()),
)


def schedule_problem(expression: str) -> tuple[str, str] | None:
    """What is wrong with a recurring schedule, and the fix; None for a sound one."""
    if _RATE.fullmatch(expression):
        return None
    if cron := _CRON.fullmatch(expression):
        return _cron_problem(cron[1].split())
    if expression.startswith("at("):
        return "runs once only", f"write a recurring schedule such as {DAILY} or rate(7 days)"
    fields = expression.split()
    if len(fields) == UNIX_FIELDS and all(map(_UNIX.fullmatch, fields)):
        return "is a cron line of Unix", f"write six fields in cron(), the last a year: {DAILY}"
    return "is not a schedule of EventBridge Scheduler", f"write {DAILY} or rate(7 days)"


def timezone_problem(zone: str, expression: str | None) -> tuple[str, str] | None:
    """What is wrong with a schedule's time zone, and the fix; None for a sound one."""
    if not _ZONE.fullmatch(zone):
        return "is not the name of a time zone", f"write one such as Europe/Berlin, or {UTC}"
    if zone != UTC and (expression is None or not expression.startswith("cron(")):
        return "needs schedule.cron as cron(…)", f"write schedule.cron, such as {DAILY}"
    return None


def _cron_problem(fields: Sequence[str]) -> tuple[str, str] | None:
    if len(fields) != len(_FIELDS):
        names = ", ".join(name for name, *_ in _FIELDS)
        return f"has {len(fields)} fields", f"write six: {names}; such as {DAILY}"
    for text, (name, low, high, words) in zip(fields, _FIELDS, strict=True):
        special = _SPECIAL.get(name)
        if special and special.fullmatch(text.upper()):
            continue
        if not _is_listed(text.upper(), low, high, words):
            return f"has {text} for {name}", f"use {low} to {high}, *, lists, ranges or steps"
    if (fields[2] == "?") == (fields[4] == "?"):
        return (
            "must name days of the month or of the week, and ? for the other",
            f"write ? for exactly one of the two, such as {DAILY}",
        )
    return None


def _is_listed(text: str, low: int, high: int, words: Sequence[str]) -> bool:
    """Whether it is a comma list of ``*``, numbers or ranges, each perhaps with ``/step``."""
    numbers = {word: low + index for index, word in enumerate(words)}

    def is_number(part: str) -> bool:
        is_figure = re.fullmatch(r"\d{1,4}", part)
        return low <= numbers.get(part, int(part) if is_figure else low - 1) <= high

    def sound(item: str) -> bool:
        start, slash, step = item.partition("/")
        if slash and not re.fullmatch(r"[1-9]\d{0,3}", step):
            return False
        return start == "*" or all(map(is_number, start.split("-", 1)))

    return all(sound(item) for item in text.split(","))
