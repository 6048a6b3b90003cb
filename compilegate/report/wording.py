"""What the report says, as data: every sentence of pages and messages by its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compilegate.domain.wording import fill, sentences

FILE = Path(__file__).with_name("assets") / "wording.toml"


def say(group: str, kind: str, **values: Any) -> str:
    """The sentence of a kind, with the values that its template names."""
    return fill(sentences(FILE)[group][kind], values)
