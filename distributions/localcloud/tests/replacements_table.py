"""Writes the README's table: ``python -m distributions.localcloud.tests.replacements_table``."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from compilegate_localcloud.emulator.replacements import LIBRARIES, REPLACEMENTS, Replacement

ROOT = Path(__file__).resolve().parents[3]
DISTRIBUTION = ROOT / "distributions" / "localcloud"
README = DISTRIBUTION / "README.md"
LOCK = ROOT / "requirements" / "localcloud.lock"
TABLE = re.compile(
    r"(?P<start><!-- replacements: [^\n]*-->\n).*?(?P<end><!-- end of replacements -->)", re.DOTALL
)


def locked_version(library: str) -> str:
    """The version that the emulator's environment has."""
    return re.search(rf"^{library}==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)[1]


def name(replacement: Replacement) -> str:
    """The name without its package, with the signature of a function."""
    parameters = (
        replacement.signature
        if replacement.signature.startswith("(")
        else f": {replacement.signature}"
    )
    return f"`{replacement.target.removeprefix(f'{replacement.library}.')}{parameters}`"


def rows(library: str) -> str:
    """A library's replacements; neighbours with one reason share a row."""
    ours = (one for one in REPLACEMENTS if one.library == library)
    lines = (
        (", ".join(map(name, same)), *reason)
        for reason, same in groupby(ours, lambda one: (one.why, one.unnecessary_once))
    )
    escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


def refreshed(page: str) -> str:
    """The page with today's replacements, library by library."""
    parts = [
        f"**{library} {locked_version(library)}**\n\n"
        "| replaced or extended | why | unnecessary once upstream has |\n|---|---|---|\n"
        + rows(library)
        for library in LIBRARIES
    ]
    table = "\n".join(parts)
    return TABLE.sub(lambda part: f"{part['start']}\n{table}\n{part['end']}", page)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
