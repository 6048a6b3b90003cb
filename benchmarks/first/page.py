"""The kept results as the tables of the README here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.decision.tables import table

PAGE = Path(__file__).with_name("README.md")
KEPT = Path(__file__).with_name("results.json")
Result = Mapping[str, Any]


def write() -> None:
    """Bring the page up to date."""
    results = json.loads(KEPT.read_text())
    text = PAGE.read_text()
    for name, part in (("scripts", _scripts(results)), ("long runs", _long(results))):
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{part}\n{end}{after}"
    PAGE.write_text(text)


def _scripts(results: Mapping[str, Result]) -> str:
    reached = sum(one["outcome"] == "answer" for one in results.values())
    files = sum(one["outcome"] == "file" for one in results.values())
    repositories = {name.split()[0] for name in results}
    head = ("script", "kind", "minutes", "of a core", "questions", "outcome", "what it lacked")
    rows = [
        (_short(name), one["kind"], f"{one['minutes']:.1f}", _core(one),
         str(one.get("questions", "")), one["outcome"], _lacked(one))
        for name, one in sorted(results.items())
    ]  # fmt: skip
    said = (
        f"{len(results)} scripts of {len(repositories)} repositories: {reached} reached the answer "
        f"({100 * reached / max(len(results), 1):.0f} of 100), {files} the file without a gain; "
        "every other named its cause."
    )
    return f"{said}\n\n{table(head, rows)}"


def _core(result: Result) -> str:
    """Minutes of one core; the first scripts were run before these were counted."""
    return f"{result['cpu_minutes']:.1f}" if "cpu_minutes" in result else ""


def _lacked(result: Result) -> str:
    parts = (result["problem"], result.get("fix"))
    text = "; ".join(" ".join(part.split())[:220] for part in parts if part)
    return text.replace("|", "\\|")


def _short(name: str) -> str:
    """Repository, path, and enough of the arguments to tell two runs of one script apart."""
    repository, path, *words = name.split()
    variant = next((one for one in words if one in ("--use-optimizer", "--compile=False")), "")
    return " ".join(part for part in (repository, path, variant) if part)


def _long(results: Mapping[str, Result]) -> str:
    head = ("script", "steps", "seconds, as it is", "compiled", "measured", "predicted", "interval")
    rows = [
        (_short(name), str(one["long"]["steps"]), *(f"{s:.1f}" for s in one["long"]["seconds"]),
         f"{one['long']['measured']:.2f}", f"{one['long']['predicted']:.2f}",
         "{:.2f} to {:.2f}".format(*one["long"]["interval"]))
        for name, one in sorted(results.items()) if "long" in one
    ]  # fmt: skip
    return table(head, rows) if rows else "Not measured yet."


if __name__ == "__main__":
    write()
