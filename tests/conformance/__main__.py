"""Prints how far our requests agree with the SDK's: ``python -m tests.conformance``."""

from __future__ import annotations

import sys

from tests.conformance.compare import unjustified
from tests.conformance.report import agreement, summary, tables

if __name__ == "__main__":
    result = agreement()
    print(tables(result) if "--tables" in sys.argv else summary(result))
    open_ones = unjustified(result.differing)
    for item in open_ones:
        print(f"{item.case}: {item.path}: ours {item.ours!r}, SDK {item.sdk!r}")
    sys.exit(1 if open_ones or result.missed else 0)
