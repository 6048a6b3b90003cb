"""``# compilegate: ignore[rule-id] reason`` on a line, or alone on the line above."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping

MARK = re.compile(r"#\s*compilegate:\s*ignore\[(?P<rules>[a-z0-9, *-]+)\]", re.IGNORECASE)
EVERY_RULE = "*"


def suppressions(text: str) -> Mapping[int, frozenset[str]]:
    """The rules that are not to be reported, by line; ``*`` stands for all of them."""
    found: dict[int, frozenset[str]] = {}
    if "compilegate" not in text:
        return found
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.COMMENT:
                continue
            mark = MARK.search(token.string)
            if mark:
                rules = frozenset(item.strip().lower() for item in mark["rules"].split(","))
                alone = not token.line[: token.start[1]].strip()
                line = token.start[0] + (1 if alone else 0)
                found[line] = found.get(line, frozenset()) | rules
    except (tokenize.TokenError, SyntaxError):
        return found  # what the parser took and the tokenizer does not: keep what was read
    return found
