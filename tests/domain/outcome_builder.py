"""Runs with outcomes per example, of known parts of the spread; numpy draws them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np

from tests.domain.evidence_builder import document

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


def scored(
    training_sd: float, *, runs: int = 8, examples: int = 2000, margin: float = 0.01, seed: int = 3
) -> dict[str, Any]:
    """A trial of so many runs an arm with their outcomes; both arms are equally good."""
    rng = np.random.default_rng(seed)
    right = {
        arm: beta_binomial(rng, runs, examples, training_sd) for arm in ("baseline", "compile")
    }
    return with_outcomes(
        document(
            metrics={arm: list(map(float, rows.mean(axis=1))) for arm, rows in right.items()},
            margin=margin,
            goal="maximize",
        ),
        {arm: [packed_bits(row) for row in rows] for arm, rows in right.items()},
    )


def with_outcomes(
    evidence: dict[str, Any], outcomes: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The evidence with each arm's outcomes at its full runs, in their order."""
    for arm in evidence["arms"]:
        full = [run for run in arm["runs"] if run["stage"] == "quality"]
        for run, own in zip(full, outcomes[arm["name"]], strict=True):
            run["outcomes"] = own
    return evidence
