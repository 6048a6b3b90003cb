"""How often does the judge err, what does it find, what does it cost?

    python -m benchmarks.decision [--only NAME ...] [--share 1.0] [--jobs 2] [--output FILE]
    python -m benchmarks.decision --document

The first form simulates the study's cells (study.py) and keeps their figures in results.json. What
has been played is kept under build/, by the digest of the judge, so that a run that was stopped
goes on where it was and never mixes two judges. The second simulates nothing: it writes the kept
results into docs/how-it-decides.md and the pages here.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.decision import document
from benchmarks.decision.played import played
from benchmarks.decision.quick import use_scipy
from benchmarks.decision.study import RESULTS, cells, figures, keep
from benchmarks.decision.tables import shown

PRINTED = ("bad_promoted", "good_missed", "ended_worse", "gpu_hours", "net_saving")


def main() -> None:
    """Simulate what was asked for, or write the documents."""
    options = _options()
    if options.document:
        document.write()
        return
    use_scipy()
    for cell in (one.of(options.share) for one in cells()):
        if options.only and not cell.name.startswith(tuple(options.only)):
            continue
        began = time.monotonic()
        outcomes = played(cell, options.jobs)
        article = played(cell.article, options.jobs) if cell.article else []
        kept = keep(cell, figures(outcomes, article), options.output)
        line = {name: shown(kept["figures"][name]) for name in PRINTED}
        seconds = time.monotonic() - began
        print(f"{cell.name}: {cell.workloads} workloads, {seconds:.0f} s, {line}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decision",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", nargs="+", metavar="NAME", help="cells whose names begin so")
    add("--share", type=float, default=1.0, help="of each cell's workloads")
    add("--jobs", type=int, default=2)
    add("--output", type=Path, default=RESULTS)
    add("--document", action="store_true", help="write the kept results into the documentation")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
