"""Runs every measurement and writes benchmarks/results.json. `make bench`.

Nothing here passes or fails: a figure is what one machine showed on one day.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from benchmarks import checks, results
from lambdas.handlers import STEPS

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = 7
# CPU seconds, which other work on the machine lengthens least.
PROBE = (
    "import sys, time; sys.path.insert(0, sys.argv[1]); t = time.process_time(); "
    "from lambdas import handlers; getattr(handlers, sys.argv[2]); "
    "print(time.process_time() - t)"
)
# Isolated, without site packages, and without bytecode: as a Lambda finds its read-only code.
ISOLATED = ("-I", "-S", "-B")


def measure() -> dict[str, Any]:
    """Every figure of results.json."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        figures = synthesis(output)
        # The staged folder that every Lambda is made from.
        bundle = next(path.parent for path in output.glob("asset.*/lambdas"))
        figures["bundle"] = sizes(bundle)
        figures["handler_import_cpu_ms"] = imports(bundle)
    figures["bare_interpreter_ms"] = round(bare_interpreter_ms(), 1)
    figures["checks"] = checks.measure()
    return figures


def synthesis(output: Path) -> dict[str, Any]:
    """Seconds of one synthesis in a fresh process, and the template's size."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        check=True,
        env={**os.environ, "CDK_OUTDIR": str(output)},
    )
    seconds = time.perf_counter() - began
    templates = list(output.glob("*.template.json"))
    size = sum(path.stat().st_size for path in templates)
    return {"synth_seconds": round(seconds, 2), "template_kib": round(size / 1024, 1)}


def sizes(bundle: Path) -> dict[str, Any]:
    """Megabytes of the bundle, zipped as it is uploaded and unpacked."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "bundle.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            files = [path for path in bundle.rglob("*") if path.is_file()]
            for path in files:
                zipped.write(path, path.relative_to(bundle))
        packed = archive.stat().st_size
    unpacked = sum(path.stat().st_size for path in files)
    return {
        "files": len(files),
        "zipped_mb": round(packed / 1e6, 2),
        "unpacked_mb": round(unpacked / 1e6, 2),
    }


def imports(bundle: Path) -> dict[str, float]:
    """CPU milliseconds to import each handler in a fresh isolated interpreter, the median."""
    medians = {}
    for step in sorted(STEPS):
        seconds = statistics.median(_import_seconds(bundle, step) for _ in range(IMPORTS))
        medians[step] = round(seconds * 1000, 1)
    return medians


def _import_seconds(bundle: Path, step: str) -> float:
    run = subprocess.run(
        [sys.executable, *ISOLATED, "-c", PROBE, str(bundle), step],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(run.stdout)


def bare_interpreter_ms() -> float:
    """Milliseconds of starting the same interpreter with nothing to import, the median."""
    times = []
    for _ in range(IMPORTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, *ISOLATED, "-c", ""], check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    results.keep("results", measure)
