"""The judge of a promotion: production's runs in, decision out (judge.py judges trials as well).

Kept apart from the gates of a trial, so that what turns a regression off loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable

from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import PROBATION, Evidence
from compilegate.domain.judging.figures import (
    arm_figures,
    production_quality_figures,
    production_speedup_figures,
    saving_figures,
    speedup_figures,
)
from compilegate.domain.judging.identity import decision_id
from compilegate.domain.judging.probation import ProbationFinding, Seen, judge_probation
from compilegate.domain.judging.speed import Segments, analyse_segments, judge_speed
from compilegate.domain.judging.validity import invalid_reasons
from compilegate.domain.reasons import Reason

Judge = Callable[[Evidence], Decision]


def judge_production(evidence: Evidence) -> Decision:
    """Decide on a promotion's evidence, which is of phase ``probation`` and has no controls.

    Raises InvalidEvidenceError for figures of a size that nothing can be computed from.
    """
    try:
        identity, segments = (
            decision_id(evidence.content, JUDGE_VERSION),
            analyse_segments(evidence),
        )
        invalid = invalid_reasons(evidence)
        if invalid:
            return _invalid(evidence, identity, segments, invalid)
        return probation_decision(evidence, identity, segments)
    except (ArithmeticError, ValueError) as error:
        # Finite figures of absurd size overflow somewhere; no verdict can rest on them.
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error


def probation_decision(evidence: Evidence, identity: str, segments: Segments) -> Decision:
    """The decision on production's runs; ``identity`` is its id."""
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
        reasons=distinct(found.reasons),
        speedup=production_speedup_figures(evidence, promoted) or speedup_figures(speed),
        quality=production_quality_figures(evidence, promoted),
        arms=tuple(arm_figures(arm, evidence, segments) for arm in evidence.arms),
        saving=saving_figures(promoted, evidence, segments, speed),
        next=found.next,
    )


def replay_probation(evidence: Evidence, seen: Seen) -> ProbationFinding:
    """What the judge goes through run by run on a probation's evidence; nothing is decided.

    Raises InvalidEvidenceError as ``judge_production`` does.
    """
    promoted = evidence.arm(evidence.promoted or "") or evidence.baseline
    try:
        speed = judge_speed(promoted, evidence, analyse_segments(evidence), candidates=1)
        return judge_probation(evidence, speed.estimate, seen)
    except (ArithmeticError, ValueError) as error:
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error


def _invalid(
    evidence: Evidence, identity: str, segments: Segments, reasons: tuple[Reason, ...]
) -> Decision:
    return Decision(
        workload=evidence.workload,
        decision_id=identity,
        judge_version=JUDGE_VERSION,
        stage=PROBATION,
        verdict=Verdict.INVALID,
        candidate=None,
        reasons=distinct(reasons),
        arms=tuple(arm_figures(arm, evidence, segments) for arm in evidence.arms),
    )


def distinct(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Each reason once, in order."""
    return tuple(dict.fromkeys(reasons))
