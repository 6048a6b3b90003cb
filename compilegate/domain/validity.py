"""Whether the evidence compares like with like; what fails here can never promote."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compilegate.domain.decision import Reason
from compilegate.domain.evidence import Arm, Evidence, QualityRun, SpeedRun
from compilegate.domain.workload import MANAGED_COMPILER

Runs = Sequence[SpeedRun] | Sequence[QualityRun]

# Fingerprint keys that a candidate's own change explains.
EXPLAINED = {
    "instance_type": {"gpu", "driver", "world_size", "global_batch"},
    "instance_count": {"world_size", "global_batch"},
    "batch_size": {"global_batch"},
    "precision": {"precision"},
    "distribution": {"world_size"},
}
# The managed compiler exists only inside its own image.
MANAGED_COMPILER_EXPLAINS = {"image", "torch"}
# Eager and compiled arithmetic round differently; anything larger is another model or batch.
INITIAL_LOSS_TOLERANCE = 1e-2


def invalid_reasons(evidence: Evidence) -> tuple[Reason, ...]:
    """Every reason why this evidence does not compare the arms fairly."""
    reasons: list[Reason] = []
    for candidate in evidence.candidates:
        reasons += _not_applied(candidate)
        reasons += _different_fingerprints(candidate, evidence.baseline)
        reasons += _unequal_initial_loss(candidate, evidence.baseline)
    return tuple(reasons)


def _not_applied(candidate: Arm) -> Iterator[Reason]:
    for run in candidate.runs:
        if run.applied is False:
            yield Reason(
                "treatment_not_applied",
                f"{candidate.name}: the change was asked for and not applied, so the arms did "
                "not differ and nothing was measured",
            )
            return


def _different_fingerprints(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    explained = _explained(candidate)
    stages: tuple[tuple[str, Runs, Runs], ...] = (
        ("speed", candidate.speed, baseline.speed),
        ("quality", candidate.quality, baseline.quality),
    )
    for stage, ours, theirs in stages:
        reference = next((_fingerprint(run) for run in theirs if _fingerprint(run)), None)
        if reference is None:
            continue
        for run, allowed in [(r, frozenset[str]()) for r in theirs] + [
            (r, explained) for r in ours
        ]:
            found = _fingerprint(run)
            wrong = [key for key in _differing(found, reference) if key not in allowed]
            if found and wrong:
                key = wrong[0]
                yield Reason(
                    "arms_differ",
                    f"{candidate.name}: the {stage} runs differ in {', '.join(wrong)} "
                    f"({reference.get(key)!r} and {found.get(key)!r}), not only in the change",
                )
                return


def _explained(candidate: Arm) -> frozenset[str]:
    names = {name for key in candidate.overrides for name in EXPLAINED.get(key, set())}
    if candidate.overrides.get("compiler") == MANAGED_COMPILER:
        names |= MANAGED_COMPILER_EXPLAINS
    return frozenset(names)


def _fingerprint(run: SpeedRun | QualityRun) -> Mapping[str, Any] | None:
    value = run.detail.get("fingerprint")
    return value if isinstance(value, Mapping) and value else None


def _differing(found: Mapping[str, Any] | None, reference: Mapping[str, Any]) -> list[str]:
    if not found:
        return []
    return sorted(k for k in found.keys() | reference.keys() if found.get(k) != reference.get(k))


def _unequal_initial_loss(candidate: Arm, baseline: Arm) -> Iterator[Reason]:
    if "batch_size" in candidate.overrides or "precision" in candidate.overrides:
        return  # the first batch, or its arithmetic, is meant to differ
    base = {run.seed: loss for run in baseline.quality if (loss := _initial_loss(run)) is not None}
    for run in candidate.quality:
        loss = _initial_loss(run)
        if loss is None or run.seed not in base:
            continue
        if not math.isclose(loss, base[run.seed], rel_tol=INITIAL_LOSS_TOLERANCE):
            yield Reason(
                "unequal_initial_loss",
                f"{candidate.name}: seed {run.seed} starts at loss {loss:.4f}, the baseline at "
                f"{base[run.seed]:.4f}; the arms do not train the same model on the same data",
            )
            return


def _initial_loss(run: QualityRun) -> float | None:
    value = run.detail.get("initial_loss")
    return float(value) if isinstance(value, int | float) else None
