"""An interim look at a round: which arms no further run of theirs can save.

Only a loss stops a run: a candidate that looks good is held to all the runs asked for. That a
candidate can no longer be proven is not a loss: which run ended first would then decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging.production import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.trial.evidence import TrialEvidence
from compilegate.domain.trial.jobs import EndedJob
from compilegate.domain.trial.records import judge_with

# What the judge says of a candidate that has lost, whatever its other runs bring.
LOST = ("quality_worse", "candidate_crashed")


def lost_arms(
    ended: Sequence[EndedJob],
    under_test: Iterable[RunId],
    evidence: TrialEvidence,
    judge: Judge,
    *,
    trial: str,
) -> set[int]:
    """Indexes of the arms whose further runs cannot matter; ``under_test`` are the runs so far.

    The baseline's runs are needed while any candidate is left.
    """
    decision = judge_with(ended, evidence, judge, trial=trial).decision
    arms = evidence.plan.arms
    if decision.verdict in (Verdict.STAY_OFF, Verdict.INVALID):
        return set(range(len(arms)))
    lost = _lost(decision)
    indexes = {run.arm_index for run in under_test if run.arm_index}
    return {index for index in indexes if arms[index].name in lost}


def _lost(decision: Decision) -> set[str | None]:
    return {reason.arm for reason in decision.reasons if reason.code in LOST}
