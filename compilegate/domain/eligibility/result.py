"""What eligibility answers (docs/contracts.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from compilegate.domain.eligibility.payoff import Economics
from compilegate.domain.planning.plan import Choice
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.workload.model import Candidate


class EligibilityVerdict(StrEnum):
    """Closed set of answers, best first."""

    ELIGIBLE = "eligible"
    BENCHMARK = "benchmark"
    INELIGIBLE = "ineligible"


# Warnings of these codes question the benefit itself: measure before believing. Others
# (an unscaled learning rate, unpatched images) concern the side effects, not the benefit.
DOUBTS = frozenset({
    "batch_may_shrink", "communication_bound", "custom_loader", "data_bound",
    "distribution_unsupported", "dynamic_shapes", "family_unproven", "low_gpu_utilization",
    "memory_headroom", "no_same_version_baseline", "padding_longest", "run_too_short",
    "script_needs_port", "shapes_by_augmentation",
})  # fmt: skip


@dataclass(frozen=True)
class CandidateEligibility:
    """One candidate's answer."""

    candidate: Candidate
    compiler: str
    verdict: EligibilityVerdict
    reasons: tuple[Reason, ...]
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The candidate's part of the contract's document."""
        return {
            "name": self.candidate.name,
            "compiler": self.compiler,
            "verdict": str(self.verdict),
            "reasons": [reason.to_finding() for reason in self.reasons],
            "why": self.why,
        }


@dataclass(frozen=True)
class Eligibility:
    """A workload's answer; its verdict is the best of its candidates'.

    ``left_out`` names what was not derived, with the reason.
    """

    workload: str
    verdict: EligibilityVerdict
    candidates: tuple[CandidateEligibility, ...]
    reasons: tuple[Reason, ...]
    economics: Economics
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def why(self) -> dict[str, str]:
        """Why each derived candidate is there; nothing for those that the workload names."""
        return {one.candidate.name: one.why for one in self.candidates if one.why}

    @property
    def choice(self) -> Choice:
        """What a trial may be planned with."""
        candidates = self.open_candidates
        blocked = tuple(
            (one.candidate.name, blocking(one.reasons)[0].message)
            for one in self.candidates
            if one.candidate not in candidates
        )
        return Choice(candidates, self.why, (*blocked, *self.left_out))

    @property
    def open_candidates(self) -> tuple[Candidate, ...]:
        """The candidates that may be tried, in the workload's order."""
        return tuple(
            one.candidate
            for one in self.candidates
            if one.verdict is not EligibilityVerdict.INELIGIBLE
        )

    def to_dict(self) -> dict[str, Any]:
        """The contract's document."""
        return {
            "workload": self.workload,
            "verdict": str(self.verdict),
            "candidates": [one.to_dict() for one in self.candidates],
            "reasons": [reason.to_finding() for reason in self.reasons],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
            "economics": self.economics.to_dict(),
        }


def blocking(reasons: Sequence[Reason]) -> list[Reason]:
    """Those that make a candidate, or the workload, ineligible."""
    return [reason for reason in reasons if reason.severity is Severity.BLOCK]


def verdict_of(reasons: Sequence[Reason]) -> EligibilityVerdict:
    """Any block is ineligible; a warning that questions the benefit asks for a benchmark."""
    if blocking(reasons):
        return EligibilityVerdict.INELIGIBLE
    if any(reason.severity is Severity.WARN and reason.code in DOUBTS for reason in reasons):
        return EligibilityVerdict.BENCHMARK
    return EligibilityVerdict.ELIGIBLE


def best(verdicts: Sequence[EligibilityVerdict]) -> EligibilityVerdict:
    """The best of several; ineligible when there is none."""
    order = list(EligibilityVerdict)
    return min(verdicts, key=order.index, default=EligibilityVerdict.INELIGIBLE)
