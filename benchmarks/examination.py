"""What the equivalence check costs each family, beside steps and compilation of its own run.

A segment that fills an empty compile cache is examined at the first weights, a short whole run on
that cache at the last ones, both without a time limit. Seconds are this machine's; ratios are
within one run: the check over a usual step of it, and over what its compilation took.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import results

ROOT = Path(__file__).resolve().parents[1]
TRAINING_PYTHON = ROOT / ".venv-training" / "bin" / "python"
# Channels by what training/prepare_data.py writes.
FAMILIES = {
    "causal_lm": "docstrings",
    "text_classification": "docstrings",
    "diffusion": "pictures",
}
PRECISION = "bf16"  # examined in two arithmetics, an fp32 run in one
SEGMENT_STEPS, RUN_STEPS = 20, 60
LENGTHS = {"first": {"max_steps": SEGMENT_STEPS}, "last": {"steps": RUN_STEPS}}


def costs() -> dict[str, Any]:
    """Figures of examination.json."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare = ROOT / "training" / "prepare_data.py"
        subprocess.run([TRAINING_PYTHON, prepare, folder / "data"], check=True)
        kinds = product(FAMILIES, LENGTHS)
        return {"runs": [cost(folder, *kind) for kind in kinds]}


def cost(folder: Path, family: str, weights: str) -> dict[str, Any]:
    """One run and its check."""
    output = folder / f"{family}-{weights}"
    variables = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / f"{family}-cache"),
        "SM_OUTPUT_DATA_DIR": str(output),
        "SM_CHANNEL_TRAIN": str(folder / "data" / FAMILIES[family] / "train"),
        "SM_CHANNEL_VALIDATION": str(folder / "data" / FAMILIES[family] / "validation"),
        "COMPILEGATE_EQUIVALENCE": weights,
        "COMPILEGATE_EQUIVALENCE_SECONDS": "3600",
    }
    settings = {"compiler": "torch_compile", "precision": PRECISION, **LENGTHS[weights]}
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    program = ROOT / "training" / f"{family}.py"
    subprocess.run([TRAINING_PYTHON, program, *words], check=True, env=variables)
    return figures(output / "evidence", family, weights)


def figures(evidence: Path, family: str, weights: str) -> dict[str, Any]:
    """Those of a run that has left its evidence."""
    summary = json.loads((evidence / "summary.json").read_text())
    lines = map(json.loads, (evidence / "steps.jsonl").read_text().splitlines())
    step = statistics.median(line["seconds"] for line in lines if not line.get("compile_seconds"))
    check, compiled = summary["equivalence"], summary["compiler"]["compile_seconds"]
    return {
        "family": family,
        "precision": PRECISION,
        "weights": weights,
        "looked_at": sorted({f"{one['part']}.{one['arithmetic']}" for one in check["parts"]}),
        "not_looked_at": sorted({f"{one['part']} ({one['code']})" for one in check["unseen"]}),
        "check_seconds": check["seconds"],
        "step_ms": round(step * 1000, 2),
        "steps_that_take_as_long": round(check["seconds"] / step),
        "compile_seconds": compiled,
        "times_the_compilation": round(check["seconds"] / compiled, 2),
    }


if __name__ == "__main__":
    results.keep("examination", costs)
