"""What a measurement was made on. Whatever cannot be read is None."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("transformers", "diffusers", "torchao", "triton")
CARD = ("driver_version", "power.limit", "clocks.max.sm", "clocks.sm", "memory.total")
# In a process of its own: the one that measures must hold no memory on the card.
PROBE = (
    "import json, torch; gpu = torch.cuda.is_available(); print(json.dumps({"
    "'torch': torch.__version__, 'cuda': torch.version.cuda, "
    "'gpu': torch.cuda.get_device_name() if gpu else None, "
    "'gpus': torch.cuda.device_count() if gpu else 0}))"
)


def read() -> dict[str, Any]:
    """The card, its driver, clocks and power limit, and the versions of what ran on it."""
    found = json.loads(_output([sys.executable, "-c", PROBE]) or "{}")
    return {
        "gpu": None, "gpus": 0, "torch": None, "cuda": None, **found, **_card(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _output(["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]),
        "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


def _card() -> dict[str, str | None]:
    """What nvidia-smi tells of the first card, each with its unit."""
    line = _output(["nvidia-smi", f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"])
    values = [value.strip() for value in line.splitlines()[0].split(",")] if line else []
    told = dict(zip(CARD, values, strict=False))
    return {name: told.get(name) for name in CARD}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
