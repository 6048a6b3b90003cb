"""Answers whether a role's statements allow a call, as IAM would.

Knows what the stack's policies use: Allow statements, wildcards, policy variables, and the
conditions below. Anything else raises, so that no policy passes unread.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.stacks.template import as_list

VARIABLE = re.compile(r"\$\{([^}]+)\}")


@dataclass(frozen=True)
class Call:
    """One call: ``keys`` are its condition keys, with one value or several."""

    action: str
    resource: str = "*"
    keys: Mapping[str, Any] = field(default_factory=dict)


def allowed(call: Call, statements: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the statements allows the call."""
    return any(allows(statement, call) for statement in statements)


def allows(statement: Mapping[str, Any], call: Call) -> bool:
    """Whether this statement does."""
    assert "Allow" == statement["Effect"]
    return (
        any(_like(call.action.lower(), one.lower()) for one in as_list(statement["Action"]))
        and any(
            _like(call.resource, _resolved(one, call)) for one in as_list(statement["Resource"])
        )
        and all(
            _holds(operator, key, as_list(expected), call)
            for operator, keys in statement.get("Condition", {}).items()
            for key, expected in keys.items()
        )
    )


def _holds(operator: str, key: str, expected: Sequence[str], call: Call) -> bool:
    of_all, _, comparison = operator.rpartition(":")
    given = call.keys.get(key)
    if given is None:
        return of_all == "ForAllValues"  # an empty set is part of any
    patterns = [_resolved(one, call) for one in expected]
    match comparison:
        case "StringEquals":
            matches = [one in patterns for one in as_list(given)]
        case "StringLike" | "ArnEquals" | "ArnLike":
            matches = [any(_like(one, each) for each in patterns) for one in as_list(given)]
        case _:
            raise AssertionError(f"a policy uses the unknown condition {operator}")
    return all(matches)


def _resolved(pattern: str, call: Call) -> str:
    """With the values of its variables; one that has none matches nothing."""
    return VARIABLE.sub(lambda match: str(call.keys.get(match[1], match[0])), pattern)


def _like(text: str, pattern: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = (".*" if one == "*" else "." if one == "?" else re.escape(one) for one in pattern)
    return re.compile("".join(parts), re.DOTALL)
