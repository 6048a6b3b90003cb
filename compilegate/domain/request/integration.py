"""Fields of a request that Step Functions does not pass on to SageMaker.

The optimised integration knows a list of fields (``facts/step_functions_fields.json``). Any other
ends the execution as ``States.Runtime``, which no Catch sees, and only when the state runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from compilegate.domain.service_limits import Violation

RULE = "is not a field that Step Functions passes on to SageMaker"


def unsupported_fields(supported: Collection[str], request: Mapping[str, Any]) -> list[Violation]:
    """Every field of ``request`` that does not lead to one of ``supported``, paths to leaves.

    A path leads through lists as if each held one entry. Below a leaf every name is allowed.
    """
    ways = {leaf[:end] for leaf in supported for end, c in enumerate(leaf) if c == "."}
    return list(_unsupported(frozenset(supported), frozenset(ways), request, ""))


def _unsupported(
    leaves: frozenset[str], ways: frozenset[str], value: object, path: str
) -> Iterator[Violation]:
    if path in leaves:
        return
    if path and path not in ways:
        yield Violation(path, value, RULE)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _unsupported(leaves, ways, item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _unsupported(leaves, ways, item, path)
