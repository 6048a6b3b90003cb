"""The candidates that a person may turn on: those that decided trials have planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.planning.arms import CANDIDATE, promoted
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.trial.plan import RecordedPlan


@dataclass(frozen=True)
class PlannedCandidate:
    """A candidate as the newest trial that decided on it has planned it.

    ``proven`` says whether that trial promoted this very candidate. ``details`` name the trial's
    records.
    """

    name: str
    trial: str
    flag: Flag
    verdict: str
    proven: bool
    details: Mapping[str, Any] = field(default_factory=dict)


def planned_candidates(
    workload: str, planned: Iterable[tuple[TrialDecided, RecordedPlan]]
) -> dict[str, PlannedCandidate]:
    """Every candidate of a workload's decided trials, by name; the newest trial counts."""
    candidates: dict[str, PlannedCandidate] = {}
    for decided, plan in sorted(planned, key=lambda pair: pair[0].at, reverse=True):
        details = {
            "trial": decided.trial,
            "decision_key": decided.decision_key,
            "evidence_key": naming.record_key(workload, decided.trial, "evidence"),
        }
        for arm in plan.arms:
            if arm.role != CANDIDATE or arm.name in candidates:
                continue
            candidates[arm.name] = PlannedCandidate(
                name=arm.name,
                trial=decided.trial,
                flag=promoted(arm, plan.baseline, decision_id=decided.decision_id),
                verdict=decided.verdict,
                proven=(decided.verdict, decided.candidate) == (Verdict.PROMOTE, arm.name),
                details=details,
            )
    return candidates


def candidate_named(
    name: str, candidates: Mapping[str, PlannedCandidate], workload: str
) -> PlannedCandidate:
    """The candidate of that name; raises InvalidInputError that names those there are."""
    if name not in candidates:
        fix = f"use one of {', '.join(sorted(candidates))}" if candidates else (
            f"run a trial of {workload} first, so that its overrides are recorded"
        )  # fmt: skip
        problem = "is not a candidate that a decided trial of this workload has planned"
        raise InvalidInputError(problem, field="--candidate", value=name, fix=fix)
    return candidates[name]
