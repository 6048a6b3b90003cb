"""Writes the embedded cloud's README table: ``python -m tests.localcloud.replacements_table``."""

from __future__ import annotations

import re
from pathlib import Path

from compilegate.localcloud.emulator.replacements import LIBRARIES, REPLACEMENTS, Replacement

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "compilegate" / "localcloud" / "README.md"
LOCK = ROOT / "requirements" / "localcloud.lock"
TABLE = re.compile(
    r"(?P<start><!-- replacements: [^\n]*-->\n).*?(?P<end><!-- end of replacements -->)", re.DOTALL
)


def locked_version(library: str) -> str:
    """The version that the emulator's environment has."""
    return re.search(rf"^{library}==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)[1]


def row(one: Replacement) -> str:
    """One replacement; the name without its package, the signature for functions."""
    name = one.target.removeprefix(f"{one.library}.")
    parameters = one.signature if one.signature.startswith("(") else f": {one.signature}"
    cells = (f"`{name}{parameters}`", one.why, one.unnecessary_once)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def refreshed(page: str) -> str:
    """The page with today's replacements, library by library."""
    parts = [
        f"**{library} {locked_version(library)}**\n\n"
        "| replaced or extended | why | unnecessary once upstream has |\n|---|---|---|\n"
        + "".join(row(one) for one in REPLACEMENTS if one.library == library)
        for library in LIBRARIES
    ]
    table = "\n".join(parts)
    return TABLE.sub(lambda part: f"{part['start']}\n{table}\n{part['end']}", page)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
