"""What three profiled steps behind a segment cost, beside the segment's own steps.

Segments of the small language model, as written and compiled. Seconds are this machine's; ratios
are within one run: profiling over a usual step of it, and over so many as the segment has.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.recorder import ROOT, SETTINGS, TEXT, TRAINING_PYTHON

SEGMENT_STEPS = 320
ARMS = ("none", "torch_compile")


def costs() -> dict[str, Any]:
    """Figures of profiling.json."""
    with tempfile.TemporaryDirectory() as scratch:
        return {"segments": [cost(Path(scratch), compiler) for compiler in ARMS]}


def cost(folder: Path, compiler: str) -> dict[str, Any]:
    """One segment with its profile."""
    settings = {**SETTINGS, "compiler": compiler, "max_steps": SEGMENT_STEPS}
    return figures(segment(folder / compiler, settings, COMPILEGATE_PROFILE="1"), compiler)


def segment(output: Path, settings: dict[str, Any], **variables: str) -> Path:
    """The evidence of a segment of the language model, on an empty compile cache."""
    variables = {
        **os.environ, "OMP_NUM_THREADS": "1", "SM_OUTPUT_DATA_DIR": str(output),
        "TORCHINDUCTOR_CACHE_DIR": str(output / "cache"), **variables,
    }  # fmt: skip
    for channel in ("train", "validation"):
        place = output / channel
        place.mkdir(parents=True)
        (place / "text.jsonl").write_text(json.dumps({"text": TEXT}))
        variables[f"SM_CHANNEL_{channel.upper()}"] = str(place)
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    program = ROOT / "training" / "causal_lm.py"
    subprocess.run([TRAINING_PYTHON, program, *words], check=True, env=variables)
    return output / "evidence"


def figures(evidence: Path, compiler: str) -> dict[str, Any]:
    """Those of a segment that has left its evidence."""
    summary = json.loads((evidence / "summary.json").read_text())
    lines = map(json.loads, (evidence / "steps.jsonl").read_text().splitlines())
    step = statistics.median(line["seconds"] for line in lines if not line.get("compile_seconds"))
    profile = summary["profile"]
    seconds = sum(one["seconds"] for one in profile["rows"])
    return {
        "compiler": compiler,
        "steps": summary["steps"],
        "step_ms": round(step * 1000, 2),
        "profiled_step_ms": round(seconds * 1000, 2),
        "profiling_seconds": profile["spent_seconds"],
        "steps_that_take_as_long": round(profile["spent_seconds"] / step, 1),
        "share_of_the_steps": round(profile["spent_seconds"] / (step * summary["steps"]), 4),
        "kilobytes": round(len(json.dumps(profile)) / 1000, 2),
    }


if __name__ == "__main__":
    results.keep("profiling", costs)
