"""Writes the table of compilegate/verify/README.md: ``python -m tests.docs.assumptions``."""

from __future__ import annotations

import re
from pathlib import Path

from compilegate.verify.assumptions import Assumption, load_assumptions

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "compilegate" / "verify" / "README.md"
TABLE = re.compile(
    r"(?P<start><!-- assumptions: [^\n]*-->\n).*?(?P<end><!-- end of assumptions -->)", re.DOTALL
)


def row(one: Assumption) -> str:
    """One assumption."""
    check = one.check or f"not checked: {one.unchecked}"
    cells = (
        f"{one.behaviour} (`{one.id}`)",
        f"[`{one.relied_on}`](../../{one.relied_on})",
        f"{one.proof}: {one.source}",
        check,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def refreshed(page: str) -> str:
    """The page with today's assumptions."""
    head = (
        "| behaviour | relied on in | proven by | `make verify-aws` looks at |\n|---|---|---|---|\n"
    )
    table = head + "".join(map(row, load_assumptions()))
    return TABLE.sub(lambda part: f"{part['start']}\n{table}\n{part['end']}", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
