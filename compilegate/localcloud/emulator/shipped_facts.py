"""The app's fact files, read as data: the emulator imports no other part of the app."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "facts"


@cache
def read_facts(name: str) -> dict[str, Any]:
    """One fact file as it stands."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document
