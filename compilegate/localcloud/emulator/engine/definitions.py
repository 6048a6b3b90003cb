"""Checks of a state machine's definition before it is accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser

_CAUSE_MAX = 500


def problem_with(definition: object) -> str | None:
    """What is wrong with it, in the words of InvalidDefinition; None if nothing is."""
    if not isinstance(definition, str):
        return None
    try:
        document = json.loads(definition)
        AmazonStateLanguageParser.parse(definition)
    except Exception as error:  # noqa: BLE001  # the parser raises whatever its grammar meets
        return f"Invalid State Machine Definition: '{type(error).__name__}: {error}'"[:_CAUSE_MAX]
    dangling = next(_dangling(document, ""), None)
    return f"Invalid State Machine Definition: '{dangling}'" if dangling else None


def _dangling(machine: dict[str, Any], path: str) -> Iterator[str]:
    """Transitions to states that do not exist, which the parser accepts."""
    states = machine["States"]
    if machine["StartAt"] not in states:
        yield _missing(machine["StartAt"], f"{path}/StartAt")
    for name, state in states.items():
        choices = [*state.get("Catch", []), *state.get("Choices", [])]
        targets = [state.get("Next"), state.get("Default"), *(c.get("Next") for c in choices)]
        for target in targets:
            if target and target not in states:
                yield _missing(target, f"{path}/States/{name}")
        inner = [*state.get("Branches", []), state.get("ItemProcessor"), state.get("Iterator")]
        for branch in inner:
            if branch:
                yield from _dangling(branch, f"{path}/States/{name}")


def _missing(target: str, place: str) -> str:
    return f"MISSING_TRANSITION_TARGET: Missing 'Next' target: {target} at {place}"
