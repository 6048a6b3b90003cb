"""One file a rule, found by its place: each has ``RULES``, the rules by the words of the page."""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.referee.trial import Rule


def rules() -> dict[str, Rule]:
    """Every rule, in the order of the files."""
    found: dict[str, Rule] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(__path__)):
        found |= importlib.import_module(f"{__name__}.{module}").RULES
    return found
