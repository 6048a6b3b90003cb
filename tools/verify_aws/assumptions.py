"""What Compilegate assumes of AWS: the rows of assumptions.json.

``make verify-aws`` checks the rows on an account, and README.md shows them
(``python -m tools.docs`` writes its table), so the two cannot differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FILE = Path(__file__).with_name("assumptions.json")


class Proof(StrEnum):
    """What stands behind an assumption before it was seen on an account, strongest first."""

    AWS_CODE = "AWS's own code"
    SCHEMA = "a schema"
    TEXT = "AWS's text, which a test reads"
    READING = "reading only"


@dataclass(frozen=True)
class Assumption:
    """One behaviour of AWS that the project relies on.

    ``expected`` is what the check of this ``id`` (checks.py) sees where it holds. ``relied_on``
    is a path in this repository. ``source`` says what ``proof`` refers to, and ``test`` names the
    test that runs or reads it (``FILE::NAME``), which only reading has none of. ``check`` says what
    ``make verify-aws`` looks at; where it cannot look, ``unchecked`` says why instead. With
    ``needs_account`` the embedded cloud has no answer of its own.
    """

    id: str
    behaviour: str
    expected: str
    relied_on: str
    proof: Proof
    source: str
    test: str = ""
    check: str = ""
    unchecked: str = ""
    needs_account: bool = False


def load_assumptions() -> tuple[Assumption, ...]:
    """Every row, in the file's order."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))["assumptions"]
    return tuple(Assumption(**{**row, "proof": Proof(row["proof"])}) for row in rows)
