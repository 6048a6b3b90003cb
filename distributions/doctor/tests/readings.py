"""``python -m distributions.doctor.tests.readings``: how many findings on public scripts are right.

Each row of ``readings.csv`` is a finding that somebody read in its repository. ``rules`` says which
rules found it: ``before`` as they were, ``repaired`` once to five times in turn, each on
repositories that nothing had been repaired on.
"""

from __future__ import annotations

import csv
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROWS = Path(__file__).parent / "readings.csv"
VERDICTS = ("right", "wrong", "unclear")
LAST = "repaired 5"
Finding = tuple[str, str, int, str]  # repository, path, line, rule


@dataclass(frozen=True)
class Reading:
    """One finding and what a reader thinks of it: ``why`` where it is not right."""

    rules: str
    repository: str
    commit: str
    path: str
    line: str
    rule: str
    verdict: str
    why: str


def readings() -> list[Reading]:
    """All of them, in the order of the file."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [Reading(**row) for row in csv.DictReader(file)]


def drawn(findings: list[Finding], *, seed: str, most: int, count: int) -> list[Finding]:
    """``count`` of them by chance, at most ``most`` of a rule in one repository."""
    shuffled = sorted(findings)
    random.Random(seed).shuffle(shuffled)
    taken: Counter[tuple[str, str]] = Counter()
    kept = []
    for finding in shuffled:
        repository, _, _, rule = finding
        taken[repository, rule] += 1
        if taken[repository, rule] <= most:
            kept.append(finding)
    return sorted(kept[:count])


def tables(rows: list[Reading]) -> Iterator[str]:
    """By version of the rules, then by rule for the last version, as Markdown."""
    yield from _table("rules", rows, [row.rules for row in rows])
    yield ""
    last = [row for row in rows if row.rules == LAST]
    yield from _table("rule", last, [f"`{row.rule}`" for row in last])


def _table(head: str, rows: list[Reading], names: list[str]) -> Iterator[str]:
    yield f"| {head} | repositories | findings | right | wrong | unclear | share right |"
    yield "|---|---|---|---|---|---|---|"
    for name in dict.fromkeys([*names, "all"] if head == "rule" else names):
        same = [row for row, own in zip(rows, names, strict=True) if name in (own, "all")]
        counts = Counter(row.verdict for row in same)
        share = f"{counts['right'] / len(same):.0%}"
        places = len({row.repository for row in same})
        figures = [places, len(same), *(counts[verdict] for verdict in VERDICTS), share]
        yield f"| {name} | {' | '.join(map(str, figures))} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(tables(readings())) + "\n")
