"""Numbers as people read them; what is unknown is a dash, never a zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

UNKNOWN = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
Format = Callable[[float], str]


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


def shown(value: Any, as_text: Format) -> str:
    """``as_text(value)``, or a dash."""
    found = number(value)
    return UNKNOWN if found is None else as_text(found)


def interval(value: Any, as_text: Format) -> str:
    """``low to high``, or a dash."""
    ends = pair(value)
    return UNKNOWN if ends is None else f"{as_text(ends[0])} to {as_text(ends[1])}"


def signed(text: str) -> str:
    """A real minus sign instead of a hyphen."""
    return text.replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """At most ``digits`` significant digits, thousands separated, no exponent."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if abs(value) >= 10**digits:
        return signed(f"{value:,.0f}")
    text = f"{value:,.{decimals}f}"
    return signed(text.rstrip("0").rstrip(".") if "." in text else text)


def fixed(value: float, digits: int = 4) -> str:
    """Exactly ``digits`` significant digits, so that neighbours in a table line up."""
    if not 1e-4 <= abs(value) < 10**digits:
        return significant(value, digits)
    return signed(f"{value:#.{digits}g}".rstrip("."))


def ratio(value: float) -> str:
    """A speed-up, ``1.34x``."""
    return f"{value:.2f}x"


def percent(value: float) -> str:
    """A share of one as percent."""
    return f"{significant(100 * value)} %"


def money(value: float) -> str:
    """USD, down to fractions of a cent where the amount is that small."""
    sign = MINUS if value < 0 else ""
    size = abs(value)
    if size >= 1000:
        return f"{sign}${size:,.0f}"
    if size >= 1 or size == 0:
        return f"{sign}${size:,.2f}"
    return f"{sign}${significant(size, 2)}"


def duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    size = abs(seconds)
    for limit, factor, unit in (
        (0.001, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min"),
    ):  # fmt: skip
        if size < limit:
            return f"{significant(seconds * factor)} {unit}"
    return f"{significant(seconds / 3600)} h"


def count(value: float) -> str:
    """A whole number with thousands separated."""
    return signed(f"{value:,.0f}")


def plural(value: float, one: str, many: str | None = None) -> str:
    """``1 run``, ``2.1 runs``."""
    return f"{significant(value, 2)} {one if value == 1 else many or one + 's'}"


def ascii_only(text: str) -> str:
    """Plain ASCII without control characters, for a mail subject."""
    for mark, plain in ((MINUS, "-"), (UNKNOWN, "-"), ("—", "-"), ("µ", "u"), ("\xa0", " ")):
        text = text.replace(mark, plain)
    return " ".join("".join(c if " " <= c <= "~" else " " for c in text).split())
