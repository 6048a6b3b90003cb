"""The judge: evidence in, decision out, nothing else read and nothing remembered.

A trial ends with ``promote`` only where speed and quality are both proven; a probation ends
with ``permanent`` or ``revert``. Whatever is not settled yet is ``continue`` with the one
step that would settle it most cheaply; whatever cannot be proven is ``inconclusive``.
"""

from __future__ import annotations

from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.controls import control_figures
from compilegate.domain.judging.evidence import PROBATION, Evidence
from compilegate.domain.judging.figures import (
    arm_figures,
    quality_figures,
    saving_figures,
    speedup_figures,
)
from compilegate.domain.judging.identity import decision_id
from compilegate.domain.judging.production import distinct, probation_decision
from compilegate.domain.judging.speed import Segments, analyse_segments
from compilegate.domain.judging.trial import TrialFinding, judge_trial
from compilegate.domain.judging.validity import invalid_reasons


def judge(evidence: Evidence) -> Decision:
    """Decide on one workload's evidence.

    Raises InvalidEvidenceError for figures of a size that nothing can be computed from.
    """
    try:
        return _judge(evidence, decision_id(evidence.content, JUDGE_VERSION))
    except (ArithmeticError, ValueError) as error:
        # Finite figures of absurd size overflow somewhere; no verdict can rest on them.
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error


def _judge(evidence: Evidence, identity: str) -> Decision:
    segments = analyse_segments(evidence)
    invalid = invalid_reasons(evidence)
    if invalid:
        stage = PROBATION if evidence.phase == PROBATION else "speed"
        found = TrialFinding(Verdict.INVALID, stage, invalid)
        return _trial_decision(evidence, identity, segments, found)
    if evidence.phase == PROBATION:
        return probation_decision(evidence, identity, segments)
    return _trial_decision(evidence, identity, segments, judge_trial(evidence, segments))


def _trial_decision(
    evidence: Evidence, identity: str, segments: Segments, found: TrialFinding
) -> Decision:
    lead = found.lead
    return Decision(
        workload=evidence.workload,
        decision_id=identity,
        judge_version=JUDGE_VERSION,
        stage=found.stage,
        verdict=found.verdict,
        candidate=lead.arm.name if lead else None,
        reasons=distinct(found.reasons),
        speedup=speedup_figures(lead.speed) if lead else None,
        quality=quality_figures(lead.quality, evidence, lead.arm) if lead else None,
        arms=tuple(arm_figures(arm, evidence, segments) for arm in evidence.arms),
        saving=saving_figures(lead.arm, evidence, segments, lead.speed) if lead else None,
        next=found.next,
        controls=tuple(control_figures(one, evidence, segments) for one in evidence.controls),
    )
