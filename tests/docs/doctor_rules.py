"""Writes docs/doctor.md's table of rules: ``python -m tests.docs.doctor_rules``."""

from __future__ import annotations

import re
from pathlib import Path

from compilegate.doctor import COMPILERS, RULES
from compilegate.doctor.rule import Rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
TABLE = re.compile(
    r"(?P<start><!-- rules: [^\n]*-->\n).*?(?P<end><!-- end of rules -->)", re.DOTALL
)
WORDS = {COMPILERS: "both", COMPILERS[:1]: "torch.compile", COMPILERS[1:]: "managed"}


def row(rule: Rule) -> str:
    """One rule."""
    cells = (f"[`{rule.id}`]({rule.link})", str(rule.severity), WORDS[rule.compilers],
             f"{rule.title}. {rule.why}")  # fmt: skip
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def refreshed(page: str) -> str:
    """The page with today's rules."""
    head = "| rule | severity | compiler | why |\n|---|---|---|---|\n"
    table = head + "".join(map(row, RULES))
    return TABLE.sub(lambda found: f"{found['start']}\n{table}\n{found['end']}", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
