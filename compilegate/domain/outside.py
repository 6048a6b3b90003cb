"""What comes from outside, taken by value: text that can be shown, figures that can be kept.

A training job's files, a team's tags and the service's own words may hold anything. Text enters a
record through ``shorten`` or ``plain``, a document through ``read_json``; reasons, pages and
messages show it through ``visible``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, printable, shown

# Characters of a sentence, and of any other value: a packed set of outcomes has 1,368
# (domain/judging/evidence.py).
REASON_MAX, VALUE_MAX = 1000, 4096
# Control characters but line breaks and tabs, halves of a character, marks that turn the direction
# of text or take no space (Unicode 15, general categories Cc, Cs, Cf, Zl, Zp).
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
# Levels of a document: the deepest that is read, a mapping in a section of a summary, has four.
DEPTH_MAX = 12
# Most readers of JSON keep whole numbers up to here only.
LARGEST_WHOLE = 2**64
# What reading a broken file of another kind may raise; a lost connection is none of them.
BROKEN = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError)


def shorten(text: str) -> str:
    """Text as one line that fits a record; its end is kept, where errors say what happened."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= REASON_MAX else "… " + text[-(REASON_MAX - 2) :]


def visible(text: str) -> str:
    """Text of several lines with what would act instead of being shown by its code."""
    return text if text.isascii() and text.isprintable() else _ACTS.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "backslashreplace").decode()


def read_json(body: bytes, what: str) -> Any:
    """The document of a job's file as ``plain`` has it; raises InvalidEvidenceError."""
    try:
        return plain(json.loads(body, object_pairs_hook=once))
    except (ValueError, RecursionError, InvalidEvidenceError) as error:
        raise InvalidEvidenceError(f"{what} is broken: {shorten(str(error))}") from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON document; raises InvalidEvidenceError where a key occurs twice.

    Which of the two was meant is not known, and readers differ in which one they take.
    """
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidEvidenceError(f"the key {shown(twice)} occurs twice")
    return document


def plain(value: Any, depth: int = DEPTH_MAX) -> Any:
    """A JSON value with nothing that cannot be shown, computed or stored.

    Numbers that are not finite or too large are None, because no figure was recorded. Raises
    ValueError for a document that is nested too deeply.
    """
    if depth < 0:
        raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, str):
        return printable(value[:VALUE_MAX])[:VALUE_MAX]
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    return value if value is None or is_figure(value) else None


def is_figure(value: object) -> bool:
    """Whether it is a number that can be computed with; true and false are, too."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= LARGEST_WHOLE
