"""What recording costs: a step's time, the evidence's bytes, the judge's memory. Written as data.

.venv/bin/python -m benchmarks.recorder
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from compilegate.usecases.trial.job_output import read_steps

ROOT = Path(__file__).resolve().parents[1]
TRAINING_PYTHON = ROOT / ".venv-training" / "bin" / "python"
TIMED_STEPS = 1000
AT_ONCE = 25  # lines that a quarter of a second of 10 ms steps hands over


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder:
        results: dict[str, Any] = {
            "machine": {
                "cpus": os.cpu_count(),
                "python": platform.python_version(),
                "load_average": round(os.getloadavg()[0], 1),
            },
            "overhead": overhead(Path(folder)),
            "evidence": {str(steps): evidence(Path(folder), steps) for steps in (10**5, 10**6)},
        }
    path = ROOT / "benchmarks" / "recorder.json"
    path.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def overhead(folder: Path) -> dict[str, Any]:
    """The recorder's own time in a step, on this machine's processor."""
    done = subprocess.run(
        [TRAINING_PYTHON, ROOT / "benchmarks" / "recorder_steps.py", folder, str(TIMED_STEPS)],
        check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def evidence(folder: Path, steps: int) -> dict[str, Any]:
    """Bytes that so many steps leave, and what reading them takes."""
    sys.path.insert(0, str(ROOT / "training"))
    from compilegate_runtime.evidence import EvidenceFiles  # noqa: PLC0415 — no installed package

    files = EvidenceFiles(folder)
    for first in range(1, steps + 1, AT_ONCE):
        files.append_steps([_line(number) for number in range(first, first + AT_ONCE)])
    files.close()
    path = folder / "steps.jsonl"
    began = time.perf_counter()
    with path.open("rb") as lines:
        read_steps(lines)
    seconds = time.perf_counter() - began
    tracemalloc.start()
    with path.open("rb") as lines:
        found = read_steps(lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "megabytes": round(path.stat().st_size / 1e6, 2),
        "lines": len(found.seconds),
        "steps_read": found.steps_with_samples,
        "read_seconds": round(seconds, 2),
        "read_peak_megabytes": round(peak / 1e6, 2),
    }


def _line(number: int) -> dict[str, Any]:
    """A line as long as a language model's on several GPUs."""
    return {
        "step": number, "seconds": 0.0102345, "samples": 256, "tokens": 261_123 + number % 1000,
        "loss": 3.123456, "data_wait_seconds": 0.0001234, "learning_rate": 0.00059876,
        "gradient_norm": 0.98765,
    }  # fmt: skip


if __name__ == "__main__":
    main()
