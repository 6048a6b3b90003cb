"""The judge of a promotion: production's runs in, decision out (judge.py judges trials as well).

Kept apart from the gates of a trial, so that what turns a regression off loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import PROBATION, Evidence
from compilegate.domain.judging.evidence_file import decision_id
from compilegate.domain.judging.figures import (
    arm_figures,
    control_figures,
    production_quality_figures,
    saving_figures,
    speedup_of,
)
from compilegate.domain.judging.probation import Observer, ProbationFinding, judge_probation
from compilegate.domain.judging.speed import Segments, analyse_segments, judge_speed
from compilegate.domain.judging.validity import invalid_reasons
from compilegate.domain.judging.whole_job import estimate_whole_job
from compilegate.domain.reasons import Reason

Judge = Callable[[Evidence], Decision]


def judge_production(evidence: Evidence) -> Decision:
    """Decide on a promotion's evidence, which is of phase ``probation``.

    Raises InvalidEvidenceError for figures of a size that nothing can be computed from.
    """
    with computable():
        segments = analyse_segments(evidence)
        invalid = invalid_reasons(evidence)
        if invalid:
            controls = tuple(control_figures(one, evidence, segments) for one in evidence.controls)
            return decision(
                evidence, segments, PROBATION, Verdict.INVALID, invalid, controls=controls
            )
        promoted = evidence.promoted_arm
        speed = judge_speed(promoted, evidence, segments, candidates=1)
        whole = estimate_whole_job(promoted, evidence, segments, candidates=1)
        finding = judge_probation(evidence, speed.estimate)
        return decision(
            evidence,
            segments,
            PROBATION,
            finding.verdict,
            finding.reasons,
            candidate=promoted.name,
            speedup=speedup_of(speed, whole),
            quality=production_quality_figures(evidence, promoted),
            saving=saving_figures(promoted, evidence, segments, whole),
            next=finding.next,
        )


def replay_probation(evidence: Evidence, observer: Observer) -> ProbationFinding:
    """What the judge goes through run by run on a probation's evidence; nothing is decided.

    Raises InvalidEvidenceError as ``judge_production`` does.
    """
    with computable():
        segments = analyse_segments(evidence)
        speed = judge_speed(evidence.promoted_arm, evidence, segments, candidates=1)
        return judge_probation(evidence, speed.estimate, observer)


def decision(
    evidence: Evidence,
    segments: Segments,
    stage: str,
    verdict: Verdict,
    reasons: Iterable[Reason],
    *,
    candidate: str | None = None,
    **figures: Any,
) -> Decision:
    """A decision with what every one has: its id, each reason once, each arm's figures."""
    return Decision(
        workload=evidence.workload,
        decision_id=decision_id(evidence.content, JUDGE_VERSION),
        judge_version=JUDGE_VERSION,
        stage=stage,
        verdict=verdict,
        candidate=candidate,
        reasons=tuple(dict.fromkeys(reasons)),
        arms=tuple(arm_figures(arm, evidence, segments) for arm in evidence.arms),
        **figures,
    )


@contextmanager
def computable() -> Iterator[None]:
    """Refuse finite figures of absurd size, which overflow somewhere: no verdict can rest on them.

    Raises InvalidEvidenceError.
    """
    try:
        yield
    except (ArithmeticError, ValueError) as error:
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error
