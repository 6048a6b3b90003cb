"""What recording and saving cost a run.

Recording: a step's time, the evidence's bytes, the judge's memory. Saving: its share of the time,
and whether steps beside it are longer. One run of the small language model saves as often as the
bound allows, far more often than every five minutes; the steps that follow a save are compared with
the other steps of the same run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from benchmarks import results
from compilegate.adapters.job_outputs import read_steps

ROOT = Path(__file__).resolve().parents[1]
TRAINING_PYTHON = ROOT / ".venv-training" / "bin" / "python"
JOB = ROOT / "benchmarks" / "recorder_job.py"
TIMED_STEPS = 1000
EVALUATED = 4000  # texts
AT_ONCE = 25  # lines that a quarter of a second of 10 ms steps hands over
SETTINGS = {
    "width": 256, "layers": 4, "heads": 4, "block": 32, "batch_size": 4, "steps": 1500,
    "eval_blocks": 1, "checkpoint_minutes": 1e-4, "seed": 1,
}  # fmt: skip
TEXT = "Return the arithmetic mean of the data, a sequence of real numbers. " * 400


def recording() -> dict[str, Any]:
    """Figures of recorder.json."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            "overhead": overhead(Path(folder)),
            "outcomes": outcomes(),
            "evidence": {str(steps): evidence(Path(folder), steps) for steps in (10**5, 10**6)},
        }


def overhead(folder: Path) -> dict[str, Any]:
    """The recorder's own time in a step, on this machine's processor."""
    return _job("steps", str(folder), str(TIMED_STEPS))


def outcomes() -> dict[str, Any]:
    """What keeping outcomes per example adds to a final evaluation."""
    return _job("outcomes", str(EVALUATED))


def _job(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [TRAINING_PYTHON, JOB, *words],
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
        read = read_steps(lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "megabytes": round(path.stat().st_size / 1e6, 2),
        "lines": len(read.seconds),
        "steps_read": read.steps_with_samples,
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


def saves(folder: Path) -> dict[str, Any]:
    """One run's saves beside its steps."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SM_OUTPUT_DATA_DIR": str(folder / "data")}
    for channel in ("train", "validation"):
        (folder / channel).mkdir()
        (folder / channel / "text.jsonl").write_text(json.dumps({"text": TEXT}))
        environment[f"SM_CHANNEL_{channel.upper()}"] = str(folder / channel)
    (folder / "checkpoints").mkdir()
    environment["COMPILEGATE_CHECKPOINT_DIR"] = str(folder / "checkpoints")
    words = [word for key, value in SETTINGS.items() for word in (f"--{key}", str(value))]
    done = subprocess.run(
        [TRAINING_PYTHON, JOB, "saves", *words],
        check=True, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    made = json.loads(done.stdout.splitlines()[-1])
    lines = (folder / "data" / "evidence" / "steps.jsonl").read_text().splitlines()
    seconds = {line["step"]: line["seconds"] for line in map(json.loads, lines)}
    newest = max((folder / "checkpoints" / "progress").glob("step-*[0-9]"))
    size = sum(path.stat().st_size for path in newest.iterdir())
    return {"checkpoint_megabytes": round(size / 1e6, 1), **compared(seconds, made)}


def compared(seconds: dict[int, float], saves: list[dict[str, float]]) -> dict[str, Any]:
    """Shares and ratios of a run; the first step compiles nothing and is left out nevertheless."""
    after = {int(save["step"]) + 1 for save in saves}
    beside = [value for step, value in seconds.items() if step in after]
    others = [value for step, value in seconds.items() if step > 1 and step not in after]
    first, *later = saves
    since_first = later[-1]["at"] - first["at"]
    return {
        "steps": len(seconds),
        "saves": len(saves),
        "save_seconds_first": round(first["seconds"], 3),
        "save_seconds_median": round(statistics.median(save["seconds"] for save in later), 3),
        "share_of_time_after_the_first": round(
            sum(save["seconds"] for save in later) / since_first, 4
        ),
        "step_ms_median": round(statistics.median(others) * 1000, 2),
        "step_ratio_after_a_save": round(statistics.median(beside) / statistics.median(others), 3),
    }


if __name__ == "__main__":
    results.keep("recorder", recording)
    with tempfile.TemporaryDirectory() as scratch:
        results.keep("saves", lambda: saves(Path(scratch)))
