"""What a compile bundle saves at a run's start: on a processor, beside compiling anew.

Two short whole runs of the tiny model of tests/training: one leaves its bundle, the other restores
it. Each has a machine's folders of its own, and finds nothing but the bundle. Kernels are compiled
without vector instructions, as in the tests. Seconds are this machine's; the ratio is within one
run of this program.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results

ROOT = Path(__file__).resolve().parents[1]
TRAINING_PYTHON = ROOT / ".venv-training" / "bin" / "python"
SETTINGS = {
    "script": ROOT / "tests" / "training" / "scripts" / "bundled.py",
    "compiler": "torch_compile", "arm": "compile", "batch_size": 4, "full_run_samples": 16,
    "metric_patterns": '{"loss": "final loss ([0-9.]+)"}',
}  # fmt: skip
# As a trial asks for it; the equivalence check itself ends at once.
TRIAL = {"COMPILEGATE_EQUIVALENCE": "last", "COMPILEGATE_EQUIVALENCE_SECONDS": "0.001"}


def starts() -> dict[str, Any]:
    """Figures of compile_bundle.json."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cold, left = run(folder, "cold", TRIAL)
        warm, restored = run(folder, "restored", {"COMPILEGATE_COMPILE_BUNDLE": left["sha256"]})
    if restored["state"] != "restored":
        raise RuntimeError(f"the bundle was not restored: {restored}")
    return {
        "bundle_kib": round(left["bytes"] / 1024),
        "cold": cold,
        "restored": {**warm, "restoring_seconds": restored["seconds"]},
        "compile_seconds_ratio": round(warm["compile_seconds"] / cold["compile_seconds"], 3),
    }


def run(folder: Path, name: str, variables: dict[str, str]) -> tuple[dict[str, Any], Any]:
    """One run's figures, and what it says of its bundle; ``cpu_seconds`` are the process's."""
    local = folder / f"{name}-machine"
    local.mkdir(parents=True)
    variables = {
        **os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_VEC_ISA_OK": "0", "TMPDIR": str(local),
        "SM_OUTPUT_DATA_DIR": str(folder / name), "COMPILEGATE_CHECKPOINT_DIR": "none",
        "COMPILEGATE_COMPILE_CACHE": str(folder / "checkpoints" / "inductor"), **variables,
    }  # fmt: skip
    words = [word for key, value in SETTINGS.items() for word in (f"--{key}", str(value))]
    before = cpu_seconds()
    program = ROOT / "training" / "launch.py"
    subprocess.run([TRAINING_PYTHON, program, *words], check=True, env=variables)
    summary = json.loads((folder / name / "evidence" / "summary.json").read_text())
    keys = ("compile_seconds", "cache_hits", "cache_misses")
    figures = {key: summary["compiler"][key] for key in keys}
    figures["cpu_seconds"] = round(cpu_seconds() - before, 1)
    return figures, summary["compile_bundle"]


def cpu_seconds() -> float:
    """Of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    results.keep("compile_bundle", starts)
