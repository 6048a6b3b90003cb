"""A table of the equivalence check as a release ships it, of two classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from compilegate import facts

CPU = {"framework": "pytorch 2.13", "device": "cpu", "precision": "fp32"}
GPU = {"framework": "pytorch 2.13", "device": "cuda 8.6", "precision": "bf16"}
COUNTS = {"faults": 62, "missed": 1, "sound": 300, "false_alarms": 2, "date": "2026-11-20"}
TABLE: dict[str, Any] = {
    "as_of": "2026-11-20", "source_kind": "measured", "source": "here", "check": "0123456789ab",
    "bounds": {"cpu.gradients.own": 4.0}, "shares": {"gradients": 0.1},
    "classes": [{**CPU, **COUNTS, "versions": {"torch": "2.13.0"}}, {**GPU, **COUNTS}],
}  # fmt: skip


@contextmanager
def shipped(table: dict[str, Any]) -> Iterator[None]:
    """The release has this table; whatever keeps what it has read forgets it, then and after."""
    read = facts.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "read", lambda name: table if name == "equivalence" else read(name))
        facts.load_facts.cache_clear()
        try:
            yield
        finally:
            facts.load_facts.cache_clear()
