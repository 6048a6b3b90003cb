"""Chooses rows by what people ask for; an unknown word is refused with the likely ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts.versions import matches

MOST_NAMED = 12


def chosen(
    rows: Sequence[Mapping[str, Any]], wanted: Mapping[str, str | None]
) -> list[Mapping[str, Any]]:
    """The rows that have everything asked for, by filter name (``framework``, ``instance`` …).

    Raises InvalidInputError where no row at all has one of the values.
    """
    asked = {name: value for name, value in wanted.items() if value is not None}
    for name, value in asked.items():
        if not any(_MATCHERS[name](value, row) for row in rows):
            raise _unknown(name, value, rows)
    return [
        row for row in rows if all(_MATCHERS[name](value, row) for name, value in asked.items())
    ]


def check_region(region: str, known: Sequence[str]) -> None:
    """Raises InvalidInputError for a region that no registry serves."""
    if region not in known:
        raise _refused("region", region, known)


def _unknown(name: str, value: str, rows: Sequence[Mapping[str, Any]]) -> InvalidInputError:
    known = {str(row[_COLUMNS[name]]) for row in rows if row.get(_COLUMNS[name]) is not None}
    return _refused(name, value, sorted(known))


def _refused(name: str, value: str, known: Sequence[str]) -> InvalidInputError:
    near = difflib.get_close_matches(value, known, n=3, cutoff=0.4)
    named = list(near or known)[:MOST_NAMED]
    more = "" if near or len(known) <= MOST_NAMED else f" and {len(known) - MOST_NAMED} more"
    hint = f"did you mean {', '.join(named)}?" if near else f"there are {', '.join(named)}{more}"
    return InvalidInputError("is not on file", field=f"--{name}", value=value, fix=hint)


def _same(column: str) -> Callable[[str, Mapping[str, Any]], bool]:
    return lambda value, row: row.get(column) == value


def _version(value: str, row: Mapping[str, Any]) -> bool:
    accepted = row.get("versions_accepted") or [row["version"]]
    return any(matches(value, version) for version in accepted)


def _instance(value: str, row: Mapping[str, Any]) -> bool:
    """A type, or all of a family: ``ml.g5.xlarge``, ``g5`` or ``ml.g5``."""
    kind = str(row["instance_type"])
    return kind == value or kind.split(".")[1] == value.removeprefix("ml.")


def _text(column: str) -> Callable[[str, Mapping[str, Any]], bool]:
    return lambda value, row: value.casefold() in str(row.get(column)).casefold()


# By filter: the column that is named when nothing fits, and what fits.
_COLUMNS = {
    "framework": "framework", "version": "version", "instance": "instance_type", "model": "model",
    "compiler": "compiler", "confidence": "confidence", "switches": "switches",
    "service": "service", "subject": "subject", "where": "where", "kind": "kind",
}  # fmt: skip
_MATCHERS: Mapping[str, Callable[[str, Mapping[str, Any]], bool]] = {
    "framework": _same("framework"), "version": _version, "instance": _instance,
    "model": _text("model"), "compiler": _same("compiler"), "confidence": _same("confidence"),
    "switches": _text("switches"), "service": _text("service"), "subject": _text("subject"),
    "where": _same("where"), "kind": _same("kind"),
}  # fmt: skip
