"""Sentences as data: templates with named values, and a format for each kind of figure.

``{usd:money}`` names a value and its format (`FORMATS`), ``{runs:plural run}`` the unit that is
counted. A part in square brackets is left out where a value in it is None, False or empty;
``{known:if}`` shows nothing, so that its part stands or falls with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.errors import shorten
from compilegate.domain.formats import count, duration, fixed, money, percent, plural, significant

FORMATS: Mapping[str, Callable[..., str]] = {
    "count": count,
    "duration": duration,
    "fixed": fixed,
    "if": lambda _: "",
    "money": money,
    "percent": percent,
    "plural": plural,
    "ratio": ratio,
    "share": lambda share: percent(share, 2),
    "short": shorten,
    "significant": significant,
}
OPTIONAL = re.compile(r"\[([^][]*)\]")


class _Sentence(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, unit = format_spec.partition(" ")
        if name not in FORMATS:
            return format(value, format_spec)
        return FORMATS[name](value, unit) if unit else FORMATS[name](value)


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The sentence of these values; raises KeyError for one that the template names and lacks."""
    parts = OPTIONAL.split(template)
    parts[1::2] = [part if _has_all(part, values) else "" for part in parts[1::2]]
    return "".join(_Sentence().vformat(part, (), values) for part in parts)


def names(template: str) -> set[str]:
    """The values that a template names."""
    return {name for _, name, _, _ in Formatter().parse(re.sub(r"[][]", "", template)) if name}


def _has_all(part: str, values: Mapping[str, Any]) -> bool:
    needed = [values[name] for name in names(part)]
    return all(value or (value == 0 and value is not False) for value in needed)


@cache
def sentences(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """The templates of a file by group and kind, read on first use."""
    import tomllib  # noqa: PLC0415 - no step pays for it on its start

    return tomllib.loads(file.read_text(encoding="utf-8"))
