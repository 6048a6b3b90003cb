"""What the report says, as data: every sentence of pages and messages by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilegate.domain.wording import fill, sentences

FILE = Path(__file__).with_name("assets") / "wording.toml"


def group(name: str) -> Mapping[str, Any]:
    """The templates of a group by their kinds."""
    return sentences(FILE)[name]


def say(group_name: str, kind: str, **values: Any) -> str:
    """The sentence of a kind, with the values that its template names."""
    return fill(group(group_name)[kind], values)
