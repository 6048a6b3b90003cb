"""What the commands of this folder share: options, playing cells, keeping and showing them."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmarks.decision.provenance import judge_name
from benchmarks.decision.quick import use_scipy
from benchmarks.decision.tables import table
from tools.docs.markdown import between

PAGE = Path(__file__).with_name("README.md")
Figures = Mapping[str, Any]


class Named(Protocol):
    """A cell of a table."""

    @property
    def name(self) -> str:
        """Its first column."""


C = TypeVar("C", bound=Named)
Outcome = TypeVar("Outcome")


def play_cells(
    module: Any,
    cells: Sequence[C],
    play: Callable[[tuple[C, int]], Outcome],
    figures: Callable[[C, Sequence[Outcome]], Figures],
    *,
    trials: int,
) -> None:
    """Play what the command line of a module asks for; each cell is kept once it is played.

    ``module`` has a description, ``RESULTS`` and ``write_page``.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module.__spec__.name.removesuffix('.__main__')}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", default="", help="those whose name begins so")
    options = parser.parse_args()
    use_scipy()
    results: Path = module.RESULTS
    kept = json.loads(results.read_text()) if results.exists() else {"cells": []}
    by_name = {one["cell"]: one for one in kept["cells"]}
    with multiprocessing.Pool(options.jobs) as pool:
        for cell in cells:
            if not cell.name.startswith(options.cells):
                continue
            began = time.monotonic()
            played = pool.map(play, [(cell, index) for index in range(options.trials)], 5)
            by_name[cell.name] = {**figures(cell, played), "judge": judge_name()}
            print(by_name[cell.name], f"{time.monotonic() - began:.0f} s", flush=True)
            ordered = [by_name[one.name] for one in cells if one.name in by_name]
            results.write_text(json.dumps({"cells": ordered}, indent=1) + "\n")
            module.write_page(ordered)


def show(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The table of the page, between the markers of that name."""
    PAGE.write_text(between(PAGE.read_text(), name, table(head, rows)))
