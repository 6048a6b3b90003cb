"""The decision: verdict, reasons and what to do with the flag (docs/contracts.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from compilegate.domain.arithmetic import rounded
from compilegate.domain.reasons import Reason

# Version of the judge (domain/judging/judge.py), which every decision names. It is defined here so
# that a step which only refuses a trial does not load the judge.
JUDGE_VERSION = "2.1.0"


class Verdict(StrEnum):
    """Closed set of outcomes of a trial."""

    PROMOTE = "promote"
    STAY_OFF = "stay_off"
    REVERT = "revert"
    PERMANENT = "permanent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INELIGIBLE = "ineligible"
    CONTINUE = "continue"


class FlagAction(StrEnum):
    """What a decision does to the workload's flag."""

    ENABLE = "enable"
    DISABLE = "disable"
    KEEP = "keep"


# Only a proven promotion switches on; evidence that proves nothing leaves things as they are.
FLAG_ACTIONS: Mapping[Verdict, FlagAction] = {
    Verdict.PROMOTE: FlagAction.ENABLE,
    Verdict.PERMANENT: FlagAction.ENABLE,
    Verdict.STAY_OFF: FlagAction.DISABLE,
    Verdict.REVERT: FlagAction.DISABLE,
    Verdict.INELIGIBLE: FlagAction.DISABLE,
    Verdict.INCONCLUSIVE: FlagAction.KEEP,
    Verdict.INVALID: FlagAction.KEEP,
    Verdict.CONTINUE: FlagAction.KEEP,
}

EXIT_CODES: Mapping[Verdict, int] = {
    Verdict.PROMOTE: 0,
    Verdict.PERMANENT: 0,
    Verdict.STAY_OFF: 10,
    Verdict.INELIGIBLE: 10,
    Verdict.INCONCLUSIVE: 11,
    Verdict.CONTINUE: 11,
    Verdict.REVERT: 12,
    Verdict.INVALID: 13,
}


# Who makes the full runs of a step: the trial itself, or production as it trains anyway.
SHADOW, CANARY = "shadow", "canary"


@dataclass(frozen=True)
class SpeedStep:
    """More speed blocks of these arms; ``usd`` is None where no price is known."""

    block: int
    blocks: int
    steps: int
    arms: tuple[str, ...]
    usd: float | None
    why: str
    stage: ClassVar[str] = "speed"

    def to_dict(self) -> dict[str, Any]:
        """The step as a decision document has it."""
        return {
            "stage": self.stage, "block": self.block, "blocks": self.blocks, "steps": self.steps,
            "arms": list(self.arms), "usd": self.usd, "why": self.why,
        }  # fmt: skip


@dataclass(frozen=True)
class RequestedFullRun:
    """One full run of an arm, with its seed."""

    arm: str
    seed: int


@dataclass(frozen=True)
class QualityStep:
    """More full runs, made by the trial itself or as canary runs by production."""

    mode: str
    runs: tuple[RequestedFullRun, ...]
    usd: float | None
    why: str
    stage: ClassVar[str] = "quality"

    @property
    def arms(self) -> tuple[str, ...]:
        """The arm of each run."""
        return tuple(run.arm for run in self.runs)

    @property
    def is_canary(self) -> bool:
        """Whether production makes the runs."""
        return self.mode == CANARY

    def to_dict(self) -> dict[str, Any]:
        """The step as a decision document has it."""
        runs = [{"arm": run.arm, "seed": run.seed} for run in self.runs]
        return {
            "stage": self.stage, "mode": self.mode, "runs": runs, "usd": self.usd, "why": self.why,
        }  # fmt: skip


@dataclass(frozen=True)
class ProbationStep:
    """The next production runs; ``confirm`` where they check an alarm."""

    arms: tuple[str, ...]
    confirm: bool
    why: str
    stage: ClassVar[str] = "probation"

    def to_dict(self) -> dict[str, Any]:
        """The step as a decision document has it."""
        runs = [{"arm": arm, "confirm": self.confirm} for arm in self.arms]
        return {"stage": self.stage, "runs": runs, "why": self.why}


NextStep = SpeedStep | QualityStep | ProbationStep


@dataclass(frozen=True)
class Decision:
    """The judge's decision on one evidence document; intervals are (low, high).

    ``controls`` tell effects apart and decide nothing; they are shown only where there are any.
    """

    workload: str
    decision_id: str
    judge_version: str
    stage: str
    verdict: Verdict
    candidate: str | None
    reasons: tuple[Reason, ...]
    speedup: Mapping[str, Any] | None = None
    quality: Mapping[str, Any] | None = None
    arms: tuple[Mapping[str, Any], ...] = ()
    saving: Mapping[str, Any] | None = None
    next: NextStep | None = None
    controls: tuple[Mapping[str, Any], ...] = ()

    @property
    def flag_action(self) -> FlagAction:
        """What this decision does to the flag."""
        return FLAG_ACTIONS[self.verdict]

    def to_dict(self, flag_name: str) -> dict[str, Any]:
        """The document of the contract; ``flag_name`` is the parameter's full name."""
        document: dict[str, Any] = {
            "schema": 1,
            "workload": self.workload,
            "decision_id": self.decision_id,
            "judge_version": self.judge_version,
            "stage": self.stage,
            "verdict": str(self.verdict),
            "candidate": self.candidate,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "speedup": self.speedup,
            "quality": self.quality,
            "arms": list(self.arms),
            "saving": self.saving,
            "next": self.next.to_dict() if self.next else None,
            "flag": {"name": flag_name, "action": str(self.flag_action)},
        }
        if self.controls:
            document["controls"] = list(self.controls)
        rounded_document: dict[str, Any] = rounded(document)
        return rounded_document
