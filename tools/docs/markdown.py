"""Tables, and the places in pages that are written anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], rule: str = "---") -> str:
    """A table in Markdown."""
    lines = [head, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    texts = [f"| {' | '.join(line)} |\n" for line in lines]
    return "".join([texts[0], f"|{'|'.join([rule] * len(head))}|\n", *texts[1:]])


def between(page: str, name: str, text: str) -> str:
    """The page with this text after the comment that begins with the name."""
    place = re.compile(rf"(<!-- {name}\b[^\n]*-->\n).*?(\n<!-- end of {name} -->)", re.DOTALL)
    return place.sub(lambda match: f"{match[1]}\n{text}{match[2]}", page)
