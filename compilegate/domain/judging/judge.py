"""The judge: evidence in, decision out, nothing else read and nothing remembered.

A trial ends with ``promote`` only where speed and quality are both proven; a probation ends
with ``permanent`` or ``revert``. Whatever is not settled yet is ``continue`` with the one
step that would settle it most cheaply; whatever cannot be proven is ``inconclusive``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.controls import control_figures
from compilegate.domain.judging.evidence import PROBATION, Evidence
from compilegate.domain.judging.evidence_file import parse_evidence
from compilegate.domain.judging.figures import (
    arm_figures,
    production_quality_figures,
    production_speedup_figures,
    quality_figures,
    saving_figures,
    speedup_figures,
)
from compilegate.domain.judging.identity import decision_id
from compilegate.domain.judging.probation import ProbationFinding, Seen, judge_probation
from compilegate.domain.judging.speed import Segments, analyse_segments, judge_speed
from compilegate.domain.judging.trial import TrialFinding, judge_trial
from compilegate.domain.judging.validity import invalid_reasons


def judge(document: Mapping[str, Any]) -> Decision:
    """Decide on one evidence document.

    Raises InvalidEvidenceError when the document breaks its contract.
    """
    evidence = parse_evidence(document)
    try:
        return _judge(evidence, _identity(document))
    except (ArithmeticError, ValueError) as error:
        # Finite figures of absurd size overflow somewhere; no verdict can rest on them.
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error
    except RecursionError as error:
        raise InvalidEvidenceError("the document is nested too deeply to be read") from error


def replay_probation(document: Mapping[str, Any], seen: Seen) -> ProbationFinding:
    """What the judge goes through run by run on a probation's evidence; nothing is decided.

    Raises InvalidEvidenceError when the document breaks its contract.
    """
    evidence = parse_evidence(document)
    promoted = evidence.arm(evidence.promoted or "") or evidence.baseline
    try:
        speed = judge_speed(promoted, evidence, analyse_segments(evidence), candidates=1)
        return judge_probation(evidence, speed.estimate, seen)
    except (ArithmeticError, ValueError) as error:
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error


def _identity(document: Mapping[str, Any]) -> str:
    try:
        return decision_id(document, JUDGE_VERSION)
    except TypeError as error:
        raise InvalidEvidenceError(f"a key or value is not one that JSON has: {error}") from error


def _judge(evidence: Evidence, identity: str) -> Decision:
    segments = analyse_segments(evidence)
    invalid = invalid_reasons(evidence)
    if invalid:
        stage = PROBATION if evidence.phase == PROBATION else "speed"
        found = TrialFinding(Verdict.INVALID, stage, invalid)
        return _trial_decision(evidence, identity, segments, found)
    if evidence.phase == PROBATION:
        return _probation_decision(evidence, identity, segments)
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
        reasons=_distinct(found.reasons),
        speedup=speedup_figures(lead.speed) if lead else None,
        quality=quality_figures(lead.quality, evidence, lead.arm) if lead else None,
        arms=tuple(arm_figures(arm, evidence, segments) for arm in evidence.arms),
        saving=saving_figures(lead.arm, evidence, segments, lead.speed) if lead else None,
        next=found.next,
        controls=tuple(control_figures(one, evidence, segments) for one in evidence.controls),
    )


def _probation_decision(evidence: Evidence, identity: str, segments: Segments) -> Decision:
    promoted = evidence.arm(evidence.promoted or "") or evidence.baseline
    speed = judge_speed(promoted, evidence, segments, candidates=1)
    found = judge_probation(evidence, speed.estimate)
    return Decision(
        workload=evidence.workload,
        decision_id=identity,
        judge_version=JUDGE_VERSION,
        stage=PROBATION,
        verdict=found.verdict,
        candidate=promoted.name,
        reasons=_distinct(found.reasons),
        speedup=production_speedup_figures(evidence, promoted) or speedup_figures(speed),
        quality=production_quality_figures(evidence, promoted),
        arms=tuple(arm_figures(arm, evidence, segments) for arm in evidence.arms),
        saving=saving_figures(promoted, evidence, segments, speed),
        next=found.next,
    )


def _distinct(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(reasons))
