"""A decision's figures, read once from its document; what it does not say is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from compilegate.domain.claims import (
    CHECKED_WORSE,
    MoneyClaim,
    QualityClaim,
    SpeedClaim,
    money_claim,
    quality_claim,
    speed_claim,
)
from compilegate.domain.formats import number, pair
from compilegate.domain.records.trials import RecordedDecision

Document = Mapping[str, Any]
Interval = tuple[float, float]
# The judge turns differences so that higher is better; times this, they are the metric's own.
SIGNS = {"maximize": 1.0, "minimize": -1.0}


class _Figures:
    """Figures whose fields are named like the document's keys."""

    @classmethod
    def read(cls, document: Document | None) -> Self:
        """The figures of a document of any release."""
        names = [one.name for one in fields(cls)]  # type: ignore[arg-type]  # dataclasses below
        return cls(**{name: _value(name, (document or {}).get(name)) for name in names})


def _value(name: str, value: Any) -> Any:
    if name == "goal":
        return value if value in SIGNS else None
    if name == "predicted":
        return number(value.get("estimate")) if isinstance(value, Mapping) else None
    return pair(value) if "interval" in name else number(value)


@dataclass(frozen=True)
class SpeedFigures(_Figures):
    """The speed-up of a whole job, from ``blocks`` and ``full_runs`` of the candidate.

    ``predicted`` and ``lower_bound`` are what the short blocks alone say.
    """

    estimate: float | None = None
    interval: Interval | None = None
    lower_bound: float | None = None
    confidence: float | None = None
    blocks: float | None = None
    full_runs: float | None = None
    predicted: float | None = None

    @property
    def claim(self) -> SpeedClaim:
        """Whether a whole job is faster or slower than the baseline's."""
        return speed_claim(self.interval)


@dataclass(frozen=True)
class QualityFigures(_Figures):
    """The candidate's quality against the baseline's; of ``estimate`` below 0 is worse.

    ``delta``, ``delta_interval`` and ``limit`` are in the metric's own direction, candidate minus
    baseline; None where that is not known. A loss of the margin reaches the limit.
    """

    goal: str | None = None
    estimate: float | None = None
    interval: Interval | None = None
    confidence: float | None = None
    margin: float | None = None
    spread: float | None = None
    look: float | None = None
    runs_needed: float | None = None
    provable_margin: float | None = None

    @property
    def delta(self) -> float | None:
        """The difference."""
        return self._own(self.estimate)

    @property
    def delta_interval(self) -> Interval | None:
        """Its interval."""
        ends = [own for end in self.interval or () if (own := self._own(end)) is not None]
        return (min(ends), max(ends)) if ends else None

    @property
    def limit(self) -> float | None:
        """The difference that has to be ruled out."""
        return None if self.margin is None else self._own(-self.margin)

    def _own(self, turned: float | None) -> float | None:
        if turned is None or self.goal is None:
            return None
        return SIGNS[self.goal] * turned + 0.0  # no negative zero


@dataclass(frozen=True)
class SavingFigures(_Figures):
    """What the candidate saves, in USD; ``payback_runs`` are production runs."""

    usd_per_run: float | None = None
    usd_per_run_baseline: float | None = None
    usd_per_year: float | None = None
    interval_usd_per_year: Interval | None = None
    payback_runs: float | None = None
    trial_usd: float | None = None


@dataclass(frozen=True)
class DecisionFigures:
    """What one decision says in figures, and what they allow to be said (domain/claims.py).

    ``checked_worse``: the runs that checked an alarm decided on quality; ``quality`` is over all of
    production's runs, and may by itself show less or nothing.
    """

    speed: SpeedFigures = field(default_factory=SpeedFigures)
    quality: QualityFigures = field(default_factory=QualityFigures)
    saving: SavingFigures = field(default_factory=SavingFigures)
    quality_claim: QualityClaim = QualityClaim.OPEN
    money_claim: MoneyClaim = MoneyClaim.OFF
    checked_worse: bool = False

    @property
    def claims(self) -> dict[str, str]:
        """For programs: what the figures allow to be said."""
        return {
            "speed": str(self.speed.claim),
            "quality": str(self.quality_claim),
            "money": str(self.money_claim),
        }

    @property
    def stated_usd_per_run(self) -> float | None:
        """What a run saves, where an amount may be named."""
        return self.saving.usd_per_run if self.money_claim.has_amount else None

    @classmethod
    def read(cls, decision: RecordedDecision) -> Self:
        """The figures of a decision of any release."""
        speed, saving = SpeedFigures.read(decision.speedup), SavingFigures.read(decision.saving)
        return cls(
            speed=speed,
            quality=QualityFigures.read(decision.quality),
            saving=saving,
            quality_claim=quality_claim(decision.own_codes),
            money_claim=money_claim(
                decision.verdict,
                decision.own_codes,
                full_runs=speed.full_runs,
                interval=saving.interval_usd_per_year,
            ),
            checked_worse=CHECKED_WORSE in decision.own_codes,
        )
