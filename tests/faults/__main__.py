"""``python -m tests.faults [N]``: try every fault, or every N-th.

Standard input holds definitions and workload as ``{"definitions", "workload"}``; standard output
gets a line per row, ``{"where", "what", "expected", "problems"}``. Of ``.venv-localcloud``.
"""

from __future__ import annotations

import gc
import json
import logging
import random
import sys
import traceback

from tests.faults.machine import define
from tests.faults.rows import Row
from tests.faults.table import table


def main() -> None:
    logging.disable(logging.CRITICAL)
    given, every = json.load(sys.stdin), int(sys.argv[1]) if len(sys.argv) > 1 else 1
    define(given["definitions"])
    rows = table(given["workload"])[::every]
    # Their worlds stay until the end: the garbage collector is not to walk through them.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    for row in rows:
        line = {"where": row.where, "what": row.what, "expected": row.expected}
        sys.stdout.write(json.dumps({**line, "problems": _problems(row)}) + "\n")


def _problems(row: Row) -> list[str]:
    random.seed(0)  # the machines wait a while before they try again
    try:
        return row.run()
    except Exception:  # noqa: BLE001 - a row that breaks is a finding, too
        return [traceback.format_exc(limit=-4)]


if __name__ == "__main__":
    main()
