"""Keeps a measurement's figures beside the machine that they were measured on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def path(name: str) -> Path:
    """Where the figures of that name are kept."""
    return FOLDER / f"{name}.json"


def keep(name: str, measure: Callable[[], dict[str, Any]]) -> None:
    """Measure, print, and write the figures; ``load`` is that before the measurement."""
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }
    text = json.dumps({"machine": machine, **measure()}, indent=1)
    path(name).write_text(text + "\n")
    print(text)
