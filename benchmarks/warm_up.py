"""How long torch.compile warms up: a whole model of repeated blocks, and one block for all.

Segments of the language model with twelve blocks, each on an empty compile cache. Seconds are this
machine's; ratios are between segments of one run of this program.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.profiling import segment
from benchmarks.recorder import SETTINGS

BLOCKS, STEPS = 12, 60
COMPILERS = ("none", "torch_compile", "torch_compile_regions")


def warm_ups() -> dict[str, Any]:
    """Figures of warm_up.json."""
    with tempfile.TemporaryDirectory() as scratch:
        measured = [warm_up(Path(scratch), compiler) for compiler in COMPILERS]
    return {"blocks": BLOCKS, "steps": STEPS, "segments": measured}


def warm_up(folder: Path, compiler: str) -> dict[str, Any]:
    """One segment: seconds of its first step, within compilation, and of a later step."""
    settings = {**SETTINGS, "layers": BLOCKS, "compiler": compiler, "max_steps": STEPS}
    evidence = segment(folder / compiler, settings)
    compiled = json.loads((evidence / "summary.json").read_text())["compiler"]
    lines = [json.loads(line) for line in (evidence / "steps.jsonl").read_text().splitlines()]
    later = [line["seconds"] for line in lines[1:] if not line.get("compile_seconds")]
    return {
        "compiler": compiler,
        "graphs": compiled["graphs"],
        "compile_seconds": compiled["compile_seconds"],
        "first_step_seconds": lines[0]["seconds"],
        "later_step_ms": round(statistics.median(later) * 1000, 2),
    }


if __name__ == "__main__":
    results.keep("warm_up", warm_ups)
