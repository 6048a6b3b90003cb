"""Whether the arms began alike: for one seed the same first loss and the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compilegate.domain.judging.evidence import Arm, FullRun
from compilegate.domain.reasons import Reason

# Eager and compiled arithmetic round differently; anything larger is another model or batch.
INITIAL_LOSS_TOLERANCE = 1e-2
# Changes that give the first step another batch, or other arithmetic or random numbers.
OTHER_FIRST_LOSS = frozenset(
    {"batch_size", "precision", "instance_type", "instance_count", "distribution", "framework"}
)
# Changes that keep weights in another type of number, or split, order or draw them otherwise.
OTHER_WEIGHTS = (OTHER_FIRST_LOSS - {"batch_size"}) | {"entry_point"}


def unequal_starts(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    """Where two runs of one seed recorded another start in each arm."""
    for seed, ours, theirs in _pairs(candidate, baseline, _loss, OTHER_FIRST_LOSS):
        if not math.isclose(ours, theirs, rel_tol=INITIAL_LOSS_TOLERANCE):
            yield Reason(
                "unequal_initial_loss",
                f"{candidate.name}: seed {seed} starts at loss {ours:.4f}, the baseline at "
                f"{theirs:.4f}; the arms do not train the same model on the same data",
                candidate.name,
            )
            break
    for seed, mine, others in _pairs(candidate, baseline, _weights, OTHER_WEIGHTS):
        if mine != others:
            yield Reason(
                "unequal_initial_weights",
                f"{candidate.name}: seed {seed} starts from other weights than the baseline's; "
                "the script must draw them from the seed that it is given",
                candidate.name,
            )
            break


def unknown_start(candidate: Arm, baseline: Arm) -> Reason | None:
    """That nothing shows whether the arms began alike.

    None where something does, where the change itself explains another start, and where no
    full run of the candidate recorded what it was made of, so that there is no claim to doubt.
    """
    recorded = any(run.finished and run.detail.get("fingerprint") for run in candidate.quality)
    explained = all(kind & candidate.overrides.keys() for kind in (OTHER_FIRST_LOSS, OTHER_WEIGHTS))
    if not recorded or explained:
        return None
    losses = _pairs(candidate, baseline, _loss, OTHER_FIRST_LOSS)
    weights = _pairs(candidate, baseline, _weights, OTHER_WEIGHTS)
    if next(losses, None) or next(weights, None):
        return None
    return Reason(
        "start_unknown",
        f"{candidate.name}: no seed has a recorded first loss or weights in both arms, so nothing "
        "shows that they started alike",
        candidate.name,
    )


def _pairs(
    candidate: Arm,
    baseline: Arm,
    recorded: Callable[[FullRun], Any],
    explained_by: frozenset[str],
) -> Iterator[tuple[int, Any, Any]]:
    """(seed, candidate's, baseline's) where both arms recorded it and the change explains none."""
    if explained_by & candidate.overrides.keys():
        return
    base = {
        (run.seed, _data(run)): found
        for run in baseline.quality
        if (found := recorded(run)) is not None
    }
    for run in candidate.quality:
        found, start = recorded(run), (run.seed, _data(run))
        if found is not None and run.seed is not None and start in base:
            yield run.seed, found, base[start]


def _data(run: FullRun) -> str | None:
    """What it was trained on: production's data may be another every night."""
    fingerprint = run.detail.get("fingerprint")
    value = fingerprint.get("data_sha256") if isinstance(fingerprint, Mapping) else None
    return value if isinstance(value, str) else None


def _loss(run: FullRun) -> float | None:
    value = run.detail.get("initial_loss")
    return float(value) if isinstance(value, int | float) else None


def _weights(run: FullRun) -> str | None:
    value = run.detail.get("initial_weights_sha256")
    return value if isinstance(value, str) and value else None
