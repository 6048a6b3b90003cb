"""What a plain YAML scalar means: YAML 1.1's words and decimal numbers, and nothing surprising.

Dates stay text, and ``5e-5`` is a number as YAML 1.2 has it. Numbers that YAML 1.1 reads to
base 2, 8, 16 or 60 (``0755``, ``6:30``) are refused: nobody means them in a workload file.
"""

from __future__ import annotations

import math
import re
from typing import Any

_NULLS = ("", "~", "null", "Null", "NULL")
_INFINITE = (".inf", ".Inf", ".INF")
_NOT_A_NUMBER = (".nan", ".NaN", ".NAN")


def _cased(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: dict[str, Any] = {
    **dict.fromkeys(_NULLS),
    **dict.fromkeys(_cased("true", "yes", "on"), True),
    **dict.fromkeys(_cased("false", "no", "off"), False),
    **dict.fromkeys((*_INFINITE, *(f"+{word}" for word in _INFINITE)), math.inf),
    **dict.fromkeys((f"-{word}" for word in _INFINITE), -math.inf),
    **dict.fromkeys(_NOT_A_NUMBER, math.nan),
}
_STARTS_A_NUMBER = frozenset("0123456789+-.")
_WHOLE = re.compile(r"[-+]?\d+(_\d+)*")
_DECIMAL = re.compile(r"[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_OTHER_BASE = re.compile(
    r"[-+]?(0[\d_]+|0[bB][01_]+|0[xX][\da-fA-F_]+|\d[\d_]*(:[0-5]?\d)+(\.\d*)?)"
)


def plain_value(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError saying what is wrong with a number."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS_A_NUMBER:
        return text
    if _OTHER_BASE.fullmatch(text):
        raise ValueError("is a number to another base than ten, as YAML reads it")
    if _WHOLE.fullmatch(text):
        try:
            return int(text)
        except ValueError:
            raise ValueError("is a number of too many digits") from None
    return float(text) if _DECIMAL.fullmatch(text) else text
