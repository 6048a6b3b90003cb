"""Evaluates JSONata with the embedded cloud's own function, in its own environment.

``.venv-localcloud/bin/python -m tests.asl.in_emulator``: standard input and output are those of
``evaluate.js``, with one list of outcomes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from compilegate_localcloud.emulator.engine.expressions import EvaluationError, evaluate


def outcome(expression: str, states: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
    """``{value}`` or ``{error}``."""
    try:
        return {"value": evaluate(expression, states, variables)}
    except EvaluationError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    json.dump([outcome(**item) for item in json.load(sys.stdin)], sys.stdout)
