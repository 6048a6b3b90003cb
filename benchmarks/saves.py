"""What saving costs a run: its share of the time, and whether steps beside it are longer.

.venv/bin/python -m benchmarks.saves

Written as data. One run of the small language model saves as often as the bound allows, which asks
for far more saves than five minutes do; the steps that follow a save are compared with the steps of
the same run that follow another step.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TRAINING_PYTHON = ROOT / ".venv-training" / "bin" / "python"
SETTINGS = {
    "width": 256, "layers": 4, "heads": 4, "block": 32, "batch_size": 4, "steps": 1500,
    "eval_blocks": 1, "checkpoint_minutes": 1e-4, "seed": 1,
}  # fmt: skip
TEXT = "Return the arithmetic mean of the data, a sequence of real numbers. " * 400


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder:
        machine = {"cpus": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1)}
        result = {**machine, **measured(Path(folder))}
    (ROOT / "benchmarks" / "saves.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def measured(folder: Path) -> dict[str, Any]:
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
        [TRAINING_PYTHON, ROOT / "benchmarks" / "saves_run.py", *words],
        check=True, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    saves = json.loads(done.stdout.splitlines()[-1])
    lines = (folder / "data" / "evidence" / "steps.jsonl").read_text().splitlines()
    seconds = {line["step"]: line["seconds"] for line in map(json.loads, lines)}
    newest = max((folder / "checkpoints" / "progress").glob("step-*[0-9]"))
    size = sum(path.stat().st_size for path in newest.iterdir())
    return {"checkpoint_megabytes": round(size / 1e6, 1), **compared(seconds, saves)}


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
    main()
