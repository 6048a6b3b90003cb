"""The tables of benchmarks/README.md from benchmarks/flag-reads.json.

``python -m tests.docs.flag_figures`` writes them into the page anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks" / "README.md"
RESULTS = ROOT / "benchmarks" / "flag-reads.json"
SHOWN = re.compile(r"(?P<begin><!-- (?P<name>\S+) -->\n)(?P<table>(?:\n?\|[^\n]*\n)*)")


def tables() -> dict[str, str]:
    """By name, as Markdown."""
    found = json.loads(RESULTS.read_text())
    return {"reads": _reads(found["reads"]), "bursts": _bursts(found)}


def _reads(reads: dict[str, float]) -> str:
    rows = [
        ("a fresh process: boto3, its client, the first answer", "fresh_process_ms"),
        ("a client that has asked before", "warm_client_ms"),
        ("the same flag within a minute", "cached_ms"),
    ]
    lines = [f"| {what} | {reads[key]:.3g} ms |" for what, key in rows]
    return "\n".join(["| one answer | takes |", "|---|---:|", *lines]) + "\n"


def _bursts(found: dict[str, Any]) -> str:
    lines = [
        f"| {own['spread_seconds']:.0f} | {100 * own['used_by_others']:.0f} % "
        f"| {own['fell_to_baseline']:,} | {own['waited_median']:.0f} s "
        f"| {own['waited_longest']:.0f} s | {other['fell_to_baseline']:,} |"
        for own, other in zip(found["bursts"], found["boto3_alone"], strict=True)
    ]
    head = (
        "| within, seconds | limit used by others | fall to the baseline | wait, median | longest "
        "| fall with boto3's own retries |"
    )
    return "\n".join([head, "|---:|---:|---:|---:|---:|---:|", *lines]) + "\n"


def refreshed(page: str) -> str:
    """The page with the tables as the figures on file are."""
    made = tables()
    return SHOWN.sub(lambda m: f"{m['begin']}\n{made[m['name']]}", page)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text()))
