"""``python -m tests.frozen compare|record [part …] [-k text]``."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.frozen.parts import PARTS
from tests.frozen.recording import DATA, compare, record

SHOWN = 20


def main() -> int:
    """Compare or record; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen")
    parser.add_argument("action", choices=["compare", "record"])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("-k", dest="filter", default="", help="cases whose id contains this")
    arguments = parser.parse_args()
    if arguments.action == "record" and arguments.filter:
        parser.error("record writes all cases of a part, and would lose the others: leave out -k")
    logging.disable(logging.CRITICAL)  # of the steps
    worst = 0
    for name in arguments.parts or PARTS:
        begun = time.monotonic()
        cases = [case for case in PARTS[name]() if arguments.filter in case.id]
        if arguments.action == "record":
            record(name, cases)
            size = (DATA / f"{name}.jsonl.gz").stat().st_size
            print(f"{name}: {len(cases)} cases, {size:,} bytes, {time.monotonic() - begun:.0f} s")
            continue
        differing = list(compare(name, cases, all_cases=not arguments.filter))
        for difference in differing[:SHOWN]:
            print(difference)
        changed = len({difference.case for difference in differing})
        took = f"{time.monotonic() - begun:.0f} s"
        print(f"{name}: {changed} of {len(cases)} cases differ in {len(differing)} places ({took})")
        worst = max(worst, bool(differing))
    return worst


if __name__ == "__main__":
    sys.exit(main())
