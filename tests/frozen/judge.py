"""Decisions on generated evidence, as ``compilegate judge`` makes them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from tests.frozen import evidence
from tests.frozen.entries import command
from tests.frozen.recording import Case

TRIALS, PROBATIONS, MALFORMED = 2000, 1000, 400
# Every so many-th answer is stored whole.
WHOLE = 20


def cases() -> list[Case]:
    """A decision on each document."""
    kinds = (
        ("trial", evidence.trial, TRIALS),
        ("probation", evidence.probation, PROBATIONS),
        ("malformed", evidence.malformed, MALFORMED),
    )
    return [
        Case(f"{kind}-{number:04}", partial(_decided, make, number), whole=number % WHOLE == 0)
        for kind, make, count in kinds
        for number in range(count)
    ]


def _decided(make: Any, number: int) -> Any:
    return command("judge", "-", "--json", "--stage", "prod", text=json.dumps(make(number)))
