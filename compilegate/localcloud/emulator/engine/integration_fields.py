"""Which fields of a CreateTrainingJob request the optimised integration passes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from compilegate.localcloud.emulator.shipped_facts import read_facts


def unsupported_fields(value: Any, path: str = "") -> Iterator[str]:
    """Name every field below ``path`` that ``step_functions_fields.json`` does not list or lead to.

    A path leads through lists as if each held one entry. Below a listed field any name goes.
    """
    if isinstance(value, list):
        for item in value:
            yield from unsupported_fields(item, path)
    elif isinstance(value, dict) and path not in _supported():
        for name, item in value.items():
            below = f"{path}.{name}" if path else name
            if any(field == below or field.startswith(f"{below}.") for field in _supported()):
                yield from unsupported_fields(item, below)
            else:
                yield name


@cache
def _supported() -> frozenset[str]:
    return frozenset(row["field"] for row in read_facts("step_functions_fields")["rows"])
