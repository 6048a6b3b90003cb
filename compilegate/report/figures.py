"""A decision's figures, read once from its document; what it does not say is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from compilegate.domain.formats import number, pair

Document = Mapping[str, Any]
Interval = tuple[float, float]


class _Figures:
    """Figures whose fields are named like the document's keys."""

    @classmethod
    def read(cls, document: Document | None) -> Self:
        """The figures of a document of any release."""
        names = [one.name for one in fields(cls)]  # type: ignore[arg-type]  # dataclasses below
        return cls(**{
            name: (pair if "interval" in name else number)((document or {}).get(name))
            for name in names
        })  # fmt: skip


@dataclass(frozen=True)
class SpeedFigures(_Figures):
    """The speed-up of a full run, from ``blocks`` and ``full_runs`` of the candidate.

    Up to judge 1.2.0 from one of them: 0 blocks where it was from production's full jobs.
    """

    estimate: float | None = None
    interval: Interval | None = None
    lower_bound: float | None = None
    confidence: float | None = None
    blocks: float | None = None
    full_runs: float | None = None


@dataclass(frozen=True)
class QualityFigures(_Figures):
    """The candidate's quality against the baseline's; differences below 0 are worse."""

    estimate: float | None = None
    interval: Interval | None = None
    confidence: float | None = None
    margin: float | None = None
    spread: float | None = None
    look: float | None = None
    runs_needed: float | None = None
    provable_margin: float | None = None


@dataclass(frozen=True)
class SavingFigures(_Figures):
    """What the candidate saves, in USD; ``payback_runs`` are production runs."""

    usd_per_run: float | None = None
    usd_per_run_baseline: float | None = None
    usd_per_year: float | None = None
    interval_usd_per_year: Interval | None = None
    payback_runs: float | None = None
    trial_usd: float | None = None
