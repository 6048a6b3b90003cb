"""Tries the tests on mutants: `python -m tests.mutants [PATH ...]`, `make mutants`.

Each mutant is a small mistake in a module (`mutations.py`), for which tests beside it (`beside.py`)
are to fail. Those that live and are not in `survivors.json` are printed; the answer is 1
where a package has fewer killed than it should.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutants import trial
from tests.mutants.beside import PACKAGES, ROOT, files_beside, modules, package_of
from tests.mutants.mutations import Mutant, mutants_of, shuffled

# Where pytest, silent in the forks, does not write.
PROGRESS = os.fdopen(os.dup(2), "w")
LISTED = Path(__file__).with_name("survivors.json")
# Imported before the first fork, since every process would import it again; nothing of ours.
OF_OTHERS = ("boto3", "hypothesis", "jinja2", "pytest", "rich.console", "typer.testing", "yaml")


@dataclass(frozen=True)
class Result:
    mutant: Mutant
    killed: bool
    tests: int


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    until = time.monotonic() + options.seconds
    for name in OF_OTHERS:
        importlib.import_module(name)
    results: list[Result] = []
    for mutants in chosen(options.paths or list(PACKAGES), options.seed):
        results += tried(mutants, until=until, progress=not options.quiet)
        if time.monotonic() > until:
            break
    listed = survivors()
    summary = summarised(results, listed)
    if options.json:
        Path(options.json).write_text(json.dumps(_document(results, summary), indent=1) + "\n")
    for path in unreached(results):
        print(f"{path}: no test comes to it in this process")
    for result in results:
        if not result.killed and result.mutant.key not in listed:
            one = result.mutant
            print(f"{one.path}:{one.lines.start} {one.scope}  ({result.tests} tests)")
            print(f"  - {one.before}\n  + {one.after}")
    print(f"{'package':40}{'mutants':>8}{'killed':>8}{'listed':>8}{'share':>8}{'aim':>7}")
    for package, row in summary.items():
        share = f"{row['share']:.1%}"
        counts = f"{row['mutants']:8}{row['killed']:8}{row['listed']:8}"
        print(f"{package:40}{counts}{share:>8}{row['aim']:7.0%}")
    return int(any(row["share"] < row["aim"] for row in summary.values()))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", help="packages or modules; all of PACKAGES by default")
    parser.add_argument(
        "--seed", help="a sample: 20 mutants of each module, in an order of its own"
    )
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="how long mutants are tried"
    )
    parser.add_argument("--json", help="a file for every result")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args(arguments)


def chosen(paths: list[str], seed: str | None, *, of_each: int = 20) -> Iterator[list[Mutant]]:
    """What is tried together: all mutants at once, of a sample a module's."""
    every = ((path, (ROOT / path).read_text()) for path in modules(paths))
    if seed is None:
        yield [mutant for path, source in every for mutant in mutants_of(path, source)]
        return
    for path, source in sorted(every, key=lambda one: shuffled(one[0], seed)):
        mutants = sorted(mutants_of(path, source), key=lambda mutant: mutant.order(seed))
        if mutants:
            yield mutants[:of_each]


def tried(mutants: Sequence[Mutant], *, until: float, progress: bool) -> list[Result]:
    """The mutants that are tried in time on the tests beside their modules."""
    beside = {path: files_beside(path) for path in dict.fromkeys(m.path for m in mutants)}
    if not any(beside.values()):  # pytest would take no file for all
        return [Result(mutant, killed=False, tests=0) for mutant in mutants]
    counts: Counter[int] = Counter()

    def say(text: str) -> None:
        if progress:
            print(f"\r{text}", end="", file=PROGRESS, flush=True)

    def report(number: int, outcome: int) -> None:
        counts[outcome] += 1
        again = f"{counts[trial.UNKNOWN]} to try again"
        say(f"{number + 1}/{len(mutants)} tried, {counts[trial.ALIVE]} live, {again} ")

    where, outcomes = trial.try_swapped(mutants, beside, report, until=until)
    results = []
    for number, (mutant, outcome) in enumerate(zip(mutants, outcomes, strict=True)):
        tests = where.of(mutant, beside[mutant.path])
        last = outcome
        if outcome is None or (outcome == trial.UNKNOWN and time.monotonic() > until):
            continue
        if outcome == trial.UNKNOWN:
            last = trial.try_imported(mutant, tests, where.needs(tests))
            say(f"{number + 1}/{len(mutants)} tried again ")
        results.append(Result(mutant, last == trial.KILLED, len(tests)))
    say("")
    return results


def unreached(results: Sequence[Result]) -> list[str]:
    """Modules of which no test runs a line in this process: their mutants say nothing."""
    reached = {result.mutant.path for result in results if result.tests}
    return sorted({result.mutant.path for result in results} - reached)


def survivors() -> set[tuple[str, str, str]]:
    """What is known to live, and why, in `survivors.json`."""
    return {(one["scope"], one["before"], one["after"]) for one in json.loads(LISTED.read_text())}


def summarised(
    results: Sequence[Result], listed: set[tuple[str, str, str]]
) -> dict[str, dict[str, Any]]:
    """Figures of each package; ``share`` is of those that are not listed."""
    rows: dict[str, dict[str, Any]] = {}
    for result in results:
        package = package_of(result.mutant.path)
        _, aim = PACKAGES[package]
        row = rows.setdefault(package, {"mutants": 0, "killed": 0, "listed": 0, "aim": aim})
        row["mutants"] += 1
        row["killed"] += result.killed
        row["listed"] += not result.killed and result.mutant.key in listed
    for row in rows.values():
        row["share"] = row["killed"] / max(row["mutants"] - row["listed"], 1)
    return rows


def _document(results: Sequence[Result], summary: dict[str, dict[str, Any]]) -> dict[str, Any]:
    rows = [
        {
            "path": one.mutant.path, "line": one.mutant.lines.start, "scope": one.mutant.scope,
            "before": one.mutant.before, "after": one.mutant.after, "killed": one.killed,
            "tests": one.tests,
        }
        for one in results
    ]  # fmt: skip
    return {"packages": summary, "unreached": unreached(results), "mutants": rows}


if __name__ == "__main__":
    sys.exit(main())
