"""Outcomes per example of one run's final evaluation, as a full run of the evidence has them.

A run may have ``outcomes``: one bit (right or wrong) or one loss per held-out example, packed by
the recorder of the training runtime:

    kind          bits | losses
    examples      N, how many the run was scored on
    set_sha256    identity of the N examples, independent of their order
    mean          over all N
    data          base64: bits, the first example in the highest bit of the first byte; losses as
                  little-endian float16
    per_outcome   examples that one outcome stands for, where only whole batches were scored

``data`` holds all outcomes up to ``BOUNDS``; of more examples the same subsample in every run of
the set: those with the smallest digests. Sizes are never trusted. What is broken in any way is
absent: outcomes only ever advise, so their absence changes no verdict.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import Fields

BITS, LOSSES = "bits", "losses"
# Outcomes that a run keeps: 512 bytes of bits or 1,024 of losses. The mean variance over the
# examples is then known to about 2 % (bits) and 6 % (normal losses) of itself per pair of runs.
BOUNDS: Mapping[str, int] = {BITS: 4096, LOSSES: 512}
MOST_EXAMPLES = 10**12
KEYS = ("kind", "examples", "per_outcome", "set_sha256", "mean", "data")
# The mean as recorded and that of all kept outcomes may differ by rounding: a float16's 11 bits.
ROUNDED_BITS, ROUNDED_LOSSES = 1e-6, 2.0**-10
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Outcomes:
    """One run's outcomes: ``bits`` as one number, the first example highest, or else ``losses``.

    ``kept`` of ``examples`` outcomes are here; ``mean`` is over all of them.
    """

    set_sha256: str
    examples: int
    per_outcome: int
    kept: int
    mean: float
    bits: int | None = None
    losses: tuple[float, ...] = ()

    @property
    def population(self) -> tuple[str, int, int, int, bool]:
        """Equal for runs whose outcomes are of the same examples, one by one."""
        return (
            self.set_sha256, self.examples, self.per_outcome, self.kept, self.bits is None,
        )  # fmt: skip


def read_outcomes(document: object) -> Outcomes | None:
    """The outcomes of a run, None where there are none or anything of them is broken."""
    if not isinstance(document, Mapping):
        return None
    try:
        read = _read(Fields(document), document.get("data"))
    except (InvalidInputError, ValueError):
        return None
    return read if _agrees(read) else None


def outcomes_document(document: object) -> dict[str, Any] | None:
    """What a run of the evidence keeps of the outcomes that a job left, None of broken ones."""
    if read_outcomes(document) is None or not isinstance(document, Mapping):
        return None
    return {key: document[key] for key in KEYS if key in document}


def _read(fields: Fields, data: object) -> Outcomes:
    """Raises InvalidInputError or ValueError for what is not as the module says."""
    kind, set_sha256 = fields.choice("kind", tuple(BOUNDS)), fields.text("set_sha256")
    examples = fields.integer("examples", "examples", low=2, high=MOST_EXAMPLES)
    kept = min(examples, BOUNDS[kind])
    if not SHA256.fullmatch(set_sha256):
        raise ValueError("set_sha256 is no digest")
    bits, losses = None, ()
    if kind == BITS:
        number, padding = int.from_bytes(_bytes(data, -(-kept // 8)), "big"), -kept % 8
        if number & ((1 << padding) - 1):
            raise ValueError("bits after the last example")
        bits = number >> padding
    else:
        losses = struct.unpack(f"<{kept}e", _bytes(data, 2 * kept))
    return Outcomes(
        set_sha256=set_sha256,
        examples=examples,
        per_outcome=fields.integer("per_outcome", "examples", low=1, default=1),
        kept=kept,
        mean=fields.number("mean", "the metric's own unit"),
        bits=bits,
        losses=losses,
    )


def _bytes(text: object, size: int) -> bytes:
    """Exactly ``size`` bytes of base64; raises ValueError where it is anything else."""
    if not isinstance(text, str) or len(text) != 4 * -(-size // 3):
        raise ValueError("data has another size")
    data = binascii.a2b_base64(text, strict_mode=True)
    if len(data) != size:
        raise ValueError("data has another size")
    return data


def _agrees(read: Outcomes) -> bool:
    """Whether the recorded mean is possible, and that of the outcomes where all were kept.

    The last batch may be smaller, so that the mean over batches is a weighted one.
    """
    if not all(map(math.isfinite, (read.mean, *read.losses))):
        return False
    if read.bits is not None:
        own, room, low, high = read.bits.bit_count() / read.kept, ROUNDED_BITS, 0.0, 1.0
    else:
        low, high = min(read.losses), max(read.losses)
        own, room = math.fsum(read.losses) / read.kept, ROUNDED_LOSSES * max(-low, high)
        room += ROUNDED_BITS
    if read.kept < read.examples:  # the others may be anything
        return read.bits is None or low <= read.mean <= high
    if read.per_outcome > 1:
        return low - room <= read.mean <= high + room
    return abs(own - read.mean) <= room
