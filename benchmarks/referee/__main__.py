"""Which rules let a worse candidate through, on real repeated runs?

    python -m benchmarks.referee [--minutes 60] [--jobs 2]
    python -m benchmarks.referee --document

The first form plays every rule on every trial and keeps the results in results.json; the second
plays nothing. Both write the page and its picture.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from benchmarks.decision.quick import use_scipy
from benchmarks.referee import page, plots
from benchmarks.referee.groups import groups
from benchmarks.referee.played import keep, kept_results, played, results


def main() -> None:
    """Play what was asked for, and write page and picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.referee",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="then no more trials begin")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--document", action="store_true", help="of the kept results")
    options = parser.parse_args()
    if not options.document:
        use_scipy()
        # Metrics are rounded, so that a few runs may all be equal.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        began = time.monotonic()
        outcomes = played(options.minutes, options.jobs)
        keep(results(outcomes, groups()))
        print(f"{len(outcomes)} decisions, {time.monotonic() - began:.0f} s")
    page.write()
    plots.draw(kept_results())


if __name__ == "__main__":
    sys.exit(main())
