"""How far ``first``'s prediction is from a long run: both arms side by side for some minutes.

    python -m benchmarks.first.long_runs --python PYTHON [--seconds 120] [--only TEXT]

Of scripts that have an answer, with the arguments ``long`` of scripts.toml, that let them train for
so long. The arms run at the same time, so that what else a machine does slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.first import page
from benchmarks.first.__main__ import ENVIRONMENT, RESULTS, Script, laid_out, python_for, scripts

OBSERVER = Path(__file__).parents[2] / "training" / "observe.py"
ENDLESS = 10**9


def compared(script: Script, clones: Path, python: Path, seconds: float) -> dict[str, Any] | None:
    """The speed-up of as many steps as both arms made; None without any."""
    with tempfile.TemporaryDirectory() as place:
        running = [
            _started(script, clones, python, Path(place, compiler), seconds=seconds)
            for compiler in ("none", "torch_compile")
        ]
        for one in running:
            one.wait(timeout=10 * seconds)
        arms = [_steps(Path(place, one, "seen.json")) for one in ("none", "torch_compile")]
    count = min(map(len, arms))
    if not count:
        return None
    whole = [sum(step["seconds"] for step in one[:count]) for one in arms]
    return {"steps": count, "seconds": whole, "measured": whole[0] / whole[1]}


def _started(
    script: Script, clones: Path, python: Path, place: Path, *, seconds: float
) -> subprocess.Popen[bytes]:
    """The script under observation; ``place`` is named after the compiler."""
    place.mkdir()
    folder = laid_out(script, clones, python, place)
    settings = {
        "out": str(place / "seen.json"), "steps": ENDLESS, "seconds": seconds, "seed": 17,
        "shift": 0, "compiler": place.name,
    }  # fmt: skip
    path = os.path.relpath(place / script.path, folder)
    environment = {
        **os.environ, **ENVIRONMENT, "HOME": str(place), "PYTHONPATH": str(place),
        "MPLBACKEND": "Agg", "TORCHINDUCTOR_CACHE_DIR": str(place / "compiled"),
    }  # fmt: skip
    return subprocess.Popen(
        [str(python), str(OBSERVER), json.dumps(settings), path, *script.long], cwd=folder,
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _steps(file: Path) -> Sequence[Mapping[str, Any]]:
    return json.loads(file.read_text())["steps"] if file.exists() else []


def main() -> None:
    """Those of results.json that have an answer and no long run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, default=Path("build/repositories"))
    parser.add_argument("--seconds", type=float, default=120.0, help="of each arm's steps")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    python = arguments.python.absolute()
    for script in scripts():
        result = json.loads(RESULTS.read_text()).get(script.name, {})
        wanted = script.long and arguments.only in script.name and "long" not in result
        if not wanted or result.get("outcome") != "answer":
            continue
        clones = arguments.repositories.resolve()
        own = python_for(script, clones, python)
        measured = compared(script, clones, own, arguments.seconds)
        print(script.name, measured, flush=True)
        if measured:
            results = json.loads(RESULTS.read_text())
            results[script.name]["long"] = measured
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
            page.write()


if __name__ == "__main__":
    main()
