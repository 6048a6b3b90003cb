"""Runs with outcomes per example, of known parts of the spread; numpy draws them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np

SET = hashlib.sha256(b"a set").hexdigest()


def packed_bits(right: np.ndarray, identity: str = SET, **more: Any) -> dict[str, Any]:
    """A run's outcomes as the recorder packs bits; the first 4,096 stand for the subsample."""
    data = np.packbits(right[:4096]).tobytes()
    return {
        "kind": "bits", "examples": len(right), "set_sha256": identity,
        "mean": float(right.mean()), "data": base64.b64encode(data).decode(), **more,
    }  # fmt: skip


def packed_losses(losses: np.ndarray, identity: str = SET, **more: Any) -> dict[str, Any]:
    """A run's outcomes as the recorder packs losses."""
    data = losses[:512].astype("<f2").tobytes()
    return {
        "kind": "losses", "examples": len(losses), "set_sha256": identity,
        "mean": float(losses.mean()), "data": base64.b64encode(data).decode(), **more,
    }  # fmt: skip


def beta_binomial(
    rng: np.random.Generator, runs: int, examples: int, training_sd: float
) -> np.ndarray:
    """runs x examples of right or wrong: a hard and an easy half, as test sets have.

    Example i is right with chance p_i ~ Beta, moved for all examples of a run by a normal of
    ``training_sd``; p_i keeps clear of 0 and 1, so that the move is the same on all.
    """
    chances = 0.2 + 0.6 * rng.beta(0.4, 0.2, examples)
    moved = rng.normal(0, training_sd, (runs, 1))
    return rng.random((runs, examples)) < chances + moved
