"""Money, durations and other numbers as text; an unknown value is a dash, never a zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

UNKNOWN = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
Format = Callable[[float], str]

READABLE = 1e-7  # smaller numbers have an exponent
TEN_CENTS = 0.1
WHOLE_DOLLARS = 1000
ESTIMATE_WHOLE_DOLLARS = 10


def number(value: Any) -> float | None:
    """The value as a finite float, or None where it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def pair(value: Any) -> tuple[float, float] | None:
    """An interval with two finite ends, or None."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return None
    low, high = number(value[0]), number(value[1])
    return None if low is None or high is None else (low, high)


def shown(value: float | None, as_text: Format) -> str:
    """``as_text(value)``, or a dash."""
    finite = number(value)
    return UNKNOWN if finite is None else as_text(finite)


def interval(value: tuple[float, float] | None, as_text: Format) -> str:
    """``low to high``, or a dash."""
    ends = pair(value)
    return UNKNOWN if ends is None else f"{as_text(ends[0])} to {as_text(ends[1])}"


def signed(text: str) -> str:
    """A real minus sign instead of a hyphen."""
    return text.replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """At most ``digits`` significant digits, thousands separated; no exponent down to 1e-7."""
    if value == 0:
        return "0"
    if abs(value) < READABLE:
        return signed(f"{value:,.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return signed(text.rstrip("0").rstrip(".") if "." in text else text)


def fixed(value: float, digits: int = 4) -> str:
    """Exactly ``digits`` significant digits, so that neighbours in a table line up."""
    if not 1e-4 <= abs(value) < 10**digits:
        return significant(value, digits)
    return signed(f"{value:#.{digits}g}".rstrip("."))


def percent(share: float, digits: int = 3) -> str:
    """A share of one as percent, ``12.5%``."""
    return f"{significant(100 * share, digits)}%"


def money(usd: float) -> str:
    """US dollars: whole from $1,000, with cents below, two digits of less than ten cents."""
    size = abs(usd)
    if size >= WHOLE_DOLLARS:
        text = f"{size:,.0f}"
    elif 0 < size < TEN_CENTS:  # at least the cents
        text = max(f"{size:.2f}", significant(size, 2), key=len)
    else:
        text = f"{size:,.2f}"
    return f"{MINUS if usd < 0 else ''}${text}"


def dollars(micro_usd: int | None) -> str:
    """Whole micro-dollars as US dollars, always with cents, as accounts have them."""
    if micro_usd is None:
        return UNKNOWN
    cents = round(micro_usd / 10_000)
    return f"{MINUS if cents < 0 else ''}${abs(cents) / 100:,.2f}"


def estimated_money(usd: float) -> str:
    """An estimate in US dollars: as ``money``, without cents from $10."""
    return money(usd) if abs(usd) < ESTIMATE_WHOLE_DOLLARS else signed(f"${usd:,.0f}")


def money_tick(usd: float) -> str:
    """US dollars on an axis, without the cents that every other tick would have too: ``$0.5``."""
    return f"${significant(usd)}".replace(f"${MINUS}", f"{MINUS}$")


def duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    size = abs(seconds)
    for limit, factor, unit in (
        (0.001, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min"),
    ):  # fmt: skip
        if size < limit:
            return f"{significant(seconds * factor)} {unit}"
    return f"{significant(seconds / 3600)} h"


def elapsed(seconds: float) -> str:
    """A duration to the second, ``4 min 05 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def clock(seconds: float) -> str:
    """A running clock, ``1:05`` or ``2:03:04``."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def count(value: float) -> str:
    """A whole number with thousands separated."""
    return signed(f"{value:,.0f}")


def plural(value: float, singular: str, many: str | None = None) -> str:
    """``1 run``, ``2.1 runs``, ``1,234 runs``: what is counted is exact."""
    number = count(value) if isinstance(value, int) else significant(value, 2)
    return f"{number} {singular if value == 1 else many or singular + 's'}"


def days(value: float) -> str:
    """``2.1 days``; less than one in its hours or minutes."""
    return plural(value, "day") if value >= 1 else duration(value * 86_400)


def less_or_more(times: float) -> str:
    """A factor in words: ``25% less``, ``30% more``, from twice on ``19 times as much``."""
    if times >= 2:
        return f"{significant(times, 2)} times as much"
    return f"{percent(abs(1 - times), 2)} {'less' if times <= 1 else 'more'}"


def ascii_only(text: str) -> str:
    """Plain ASCII without control characters, for a mail subject."""
    for mark, plain in ((MINUS, "-"), (UNKNOWN, "-"), ("—", "-"), ("µ", "u"), ("\xa0", " ")):
        text = text.replace(mark, plain)
    return " ".join("".join(c if " " <= c <= "~" else " " for c in text).split())
