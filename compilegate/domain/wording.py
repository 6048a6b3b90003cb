"""Sentences as data: templates with named values, and a format for each kind of figure.

``{usd:money}`` names a value and its format (``formats``), ``{runs:plural run}`` the unit that is
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

OPTIONAL = re.compile(r"\[([^][]*)\]")


@cache
def formats() -> Mapping[str, Callable[..., str]]:
    """What a template may ask for by name; loaded by the steps that phrase something."""
    from compilegate.domain import formats as of  # noqa: PLC0415 - most steps phrase nothing
    from compilegate.domain.arithmetic import ratio  # noqa: PLC0415
    from compilegate.domain.errors import shorten, shortened  # noqa: PLC0415

    own = (of.count, of.duration, of.fixed, of.money, of.percent, of.plural, of.significant, ratio)
    return {
        **{format_.__name__: format_ for format_ in own},
        "if": lambda _: "",
        "quoted": lambda text: shortened(str(text)),
        "share": lambda share: of.percent(share, 2),
        "short": shorten,
    }


class _Sentence(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, unit = format_spec.partition(" ")
        as_text = formats().get(name)
        if as_text is None:
            return format(value, format_spec)
        return as_text(value, unit) if unit else as_text(value)


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
