"""Sentences as data: templates with named values, and a format for each kind of figure.

``{usd:money}`` names a value and its format (``formats``), ``{runs:plural run}`` the unit that is
counted. A part in square brackets is left out where a value in it is None, False or empty;
``{known:if}`` shows nothing, so that its part stands or falls with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

PARSER, OPTIONAL = Formatter(), re.compile(r"\[([^][]*)\]")


@cache
def formats() -> Mapping[str, Callable[..., str]]:
    """What a template may ask for by name; loaded by the steps that phrase something."""
    from compilegate.domain import formats as of  # noqa: PLC0415 - most steps phrase nothing
    from compilegate.domain.arithmetic import ratio  # noqa: PLC0415
    from compilegate.domain.errors import shortened  # noqa: PLC0415
    from compilegate.domain.outside import shorten  # noqa: PLC0415

    own = (
        of.count, of.days, of.dollars, of.duration, of.fixed, of.less_or_more, of.money,
        of.percent, of.plural, of.significant, ratio,
    )  # fmt: skip
    return {
        **{format_.__name__: format_ for format_ in own},
        "if": lambda _: "",
        "quoted": lambda text: shortened(str(text)),
        "share": lambda share: of.percent(share, 2),
        "short": shorten,
    }


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The sentence of these values; raises KeyError for one that the template names and lacks."""
    return "".join(
        text + (_as_text(values[name], form) if name else "")
        for optional, fields in _parts(template)
        if not optional or all(_is_there(values[name]) for _, name, _ in fields if name)
        for text, name, form in fields
    )


def names(template: str) -> set[str]:
    """The values that a template names."""
    return {name for _, fields in _parts(template) for _, name, _ in fields if name}


@cache
def _parts(template: str) -> Sequence[tuple[bool, Sequence[tuple[str, str | None, str]]]]:
    """Each part, whether it may be left out, and its texts with the value and format after each."""
    return [
        (number % 2 == 1, [(text, name, form or "") for text, name, form, _ in PARSER.parse(part)])
        for number, part in enumerate(OPTIONAL.split(template))
    ]


def _as_text(value: Any, form: str) -> str:
    name, _, unit = form.partition(" ")
    as_text = formats().get(name)
    if as_text is None:
        return format(value, form)
    return as_text(value, unit) if unit else as_text(value)


def _is_there(value: Any) -> bool:
    return bool(value) or (value == 0 and value is not False)


@cache
def sentences(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """The templates of a file by group and kind, read on first use."""
    import tomllib  # noqa: PLC0415 - no step pays for it on its start

    return tomllib.loads(file.read_text(encoding="utf-8"))
