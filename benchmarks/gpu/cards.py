"""How much of a card's arithmetic a training step uses."""

from __future__ import annotations

import json
from pathlib import Path

CARDS = Path(__file__).with_name("cards.json")


def peak_tflops(card: str | None, precision: str) -> float | None:
    """Dense TFLOPS of the tensor cores, None where no source was found for card and precision."""
    for row in json.loads(CARDS.read_text()):
        if card and all(word in card for word in row["contains"]):
            found = row.get(precision)
            return float(found) if found else None
    return None


def utilisation(flops: float | None, seconds: float | None, peak: float | None) -> float | None:
    """Model FLOPs utilisation of one step: a share of the peak, None where one is unknown."""
    if not flops or not seconds or not peak:
        return None
    return flops / seconds / (peak * 1e12)
