"""What an observed run says that reading cannot, from ``compilegate first SCRIPT --json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate_doctor.finding import Hit
from compilegate_doctor.script import Script

PADDING, RAGGED = "dynamic-padding", "ragged-last-batch"


@dataclass(frozen=True)
class Observed:
    """``static``: no dimension moved from batch to batch. ``whole``: every batch was full."""

    static: bool
    whole: bool

    def corrected(self, script: Script, rule: str, hits: Iterable[Hit]) -> Iterator[Hit]:
        """What is left of a rule's hits, and what the run showed where the code shows nothing."""
        seen_not_to_be = {PADDING: self.static, RAGGED: self.whole}
        kept = [] if seen_not_to_be.get(rule) else list(hits)
        yield from kept
        if rule == PADDING and not self.static and not kept and script.steps.loops:
            yield Hit(script.steps.loops[-1], "The batches differed in shape when it ran")


def observed_by(document: Any) -> tuple[Mapping[str, Any], Observed]:
    """The hyperparameters of a document of ``first --json``, with what it saw.

    Raises KeyError, TypeError for another document.
    """
    workload = document["workload"]
    shapes, values = workload["shapes"], workload["training"]["hyperparameters"]
    return {**values}, Observed(shapes["static"] is True, shapes["drop_last"] is True)
