"""The judge: evidence in, decision out, nothing else read and nothing remembered.

The order of questions is the order of cost: is the comparison fair, is the candidate fast
enough (minutes), is its quality held (full runs), do the full runs agree with the gate.
Anything unproven ends as ``inconclusive``; only ``promote`` can switch a compiler on.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.decision import Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.evidence import Arm, Evidence, parse_evidence
from compilegate.domain.figures import (
    arm_figures,
    quality_figures,
    saving_figures,
    speedup_figures,
)
from compilegate.domain.next_step import next_quality, next_speed
from compilegate.domain.quality import QualityFinding, QualityOutcome, judge_quality
from compilegate.domain.speed import SpeedFinding, SpeedOutcome, judge_speed
from compilegate.domain.validity import invalid_reasons

JUDGE_VERSION = "0.1.0"
NextStep = Callable[[Evidence, Sequence[str]], dict[str, Any]]
MODE_NOTE = Reason(
    "runs_as_shadow", "canary and hybrid quality runs are not available yet: these ran as shadow"
)


@dataclass(frozen=True)
class CandidateFinding:
    """Both gates' answers on one candidate, and what follows for it."""

    arm: Arm
    verdict: Verdict
    stage: str
    reasons: tuple[Reason, ...]
    speed: SpeedFinding
    quality: QualityFinding | None = None


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


def _judge(evidence: Evidence, decision_id: str) -> Decision:
    invalid = invalid_reasons(evidence)
    if invalid:
        return _decision(evidence, decision_id, Verdict.INVALID, "speed", invalid)
    if any(not run.finished for run in evidence.baseline.speed):
        reason = Reason(
            "baseline_failed", "the baseline failed in a speed block: nothing to compare"
        )
        return _decision(evidence, decision_id, Verdict.INCONCLUSIVE, "speed", (reason,))
    findings = [_judge_candidate(candidate, evidence) for candidate in evidence.candidates]
    return _combine(evidence, decision_id, findings)


def _identity(document: Mapping[str, Any]) -> str:
    """Same evidence and judge, same id: what makes a replay comparable."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{JUDGE_VERSION}\n{canonical}".encode()).hexdigest()[:16]


def _judge_candidate(candidate: Arm, evidence: Evidence) -> CandidateFinding:
    count = len(evidence.candidates)
    speed = judge_speed(
        candidate,
        evidence.baseline,
        evidence.policy,
        candidates=count,
        max_blocks=evidence.plan.max_blocks,
    )
    verdict, code = {
        SpeedOutcome.PASSED: (Verdict.PROMOTE, "speedup_proven"),
        SpeedOutcome.TOO_SLOW: (Verdict.STAY_OFF, "speedup_too_small"),
        SpeedOutcome.BELOW_PROMOTE: (Verdict.STAY_OFF, "speedup_below_promote"),
        SpeedOutcome.CRASHED: (Verdict.STAY_OFF, "candidate_crashed"),
        SpeedOutcome.MORE_BLOCKS: (Verdict.CONTINUE, "speed_unsettled"),
        SpeedOutcome.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "speed_inconclusive"),
    }[speed.outcome]
    reason = Reason(code, f"{candidate.name}: {_speed_words(speed)}{speed.reason}")
    if speed.outcome is not SpeedOutcome.PASSED:
        return CandidateFinding(candidate, verdict, "speed", (reason,), speed)
    quality = _judge_quality(candidate, evidence, level=evidence.policy.alpha / count)
    return _after_quality(candidate, evidence, speed, quality, reason)


def _speed_words(speed: SpeedFinding) -> str:
    if speed.estimate is None:
        return ""
    between = f" ({speed.interval[0]:.2f} to {speed.interval[1]:.2f})" if speed.interval else ""
    return f"{speed.estimate:.2f}x{between}, "


def _judge_quality(candidate: Arm, evidence: Evidence, *, level: float) -> QualityFinding:
    runs, base = candidate.quality, evidence.baseline.quality
    if any(not run.finished for run in runs):
        return _quality_outcome(QualityOutcome.CRASHED, "a full run crashed or diverged")
    if any(not run.finished for run in base):
        return _quality_outcome(QualityOutcome.INCONCLUSIVE, "a baseline full run failed")
    wanted = min(len(evidence.plan.seeds), evidence.policy.max_quality_runs)
    if min(len(runs), len(base)) < wanted:
        return _quality_outcome(QualityOutcome.MORE_RUNS, "full runs are missing")
    return judge_quality(
        [run.metric for run in runs if run.metric is not None],
        [run.metric for run in base if run.metric is not None],
        evidence.quality,
        level=level,
    )


def _quality_outcome(outcome: QualityOutcome, reason: str) -> QualityFinding:
    return QualityFinding(outcome, None, None, None, None, reason)


def _after_quality(
    candidate: Arm,
    evidence: Evidence,
    speed: SpeedFinding,
    quality: QualityFinding,
    speed_reason: Reason,
) -> CandidateFinding:
    verdict, code = {
        QualityOutcome.HELD: (Verdict.PROMOTE, "quality_held"),
        QualityOutcome.WORSE: (Verdict.STAY_OFF, "quality_worse"),
        QualityOutcome.CRASHED: (Verdict.STAY_OFF, "candidate_crashed"),
        QualityOutcome.MORE_RUNS: (Verdict.CONTINUE, "quality_unsettled"),
        QualityOutcome.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "quality_inconclusive"),
    }[quality.outcome]
    reasons = [
        speed_reason,
        Reason(code, f"{candidate.name}: {evidence.quality.metric}: {quality.reason}"),
    ]
    if verdict is Verdict.PROMOTE:
        disagreement = _full_runs_disagree(candidate, evidence)
        if disagreement:
            verdict = Verdict.INCONCLUSIVE
            reasons.append(disagreement)
    if evidence.policy.quality_runs != "shadow":
        reasons.append(MODE_NOTE)
    return CandidateFinding(candidate, verdict, "quality", tuple(reasons), speed, quality)


def _full_runs_disagree(candidate: Arm, evidence: Evidence) -> Reason | None:
    """A gate that the full runs' own wall clock does not bear out proves nothing."""
    ours = [run.wall_seconds for run in candidate.quality if run.wall_seconds]
    theirs = [run.wall_seconds for run in evidence.baseline.quality if run.wall_seconds]
    if len(ours) < len(candidate.quality) or len(theirs) < len(evidence.baseline.quality):
        return Reason("full_run_unmeasured", "a full run's wall clock is missing")
    ratio = statistics.fmean(theirs) / statistics.fmean(ours)
    if ratio >= evidence.policy.reject_speedup:
        return None
    return Reason(
        "full_run_disagrees",
        f"{candidate.name}: whole jobs, start-up and evaluation included, were {ratio:.2f}x, "
        f"below {evidence.policy.reject_speedup:.2f}x, although the short blocks were faster",
    )


def _combine(evidence: Evidence, decision_id: str, findings: list[CandidateFinding]) -> Decision:
    """The best proven candidate wins; without one, whatever is still open decides."""
    ranked = sorted(findings, key=lambda f: (-(f.speed.estimate or 0.0), f.arm.name))
    for verdict in (Verdict.PROMOTE, Verdict.CONTINUE, Verdict.INCONCLUSIVE, Verdict.STAY_OFF):
        chosen = [finding for finding in ranked if finding.verdict is verdict]
        if chosen and not (verdict is Verdict.PROMOTE and _faster_one_is_open(chosen[0], ranked)):
            return _from_finding(evidence, decision_id, chosen, ranked)
    raise AssertionError("every finding has one of the verdicts above")


def _faster_one_is_open(winner: CandidateFinding, ranked: list[CandidateFinding]) -> bool:
    faster = ranked[: ranked.index(winner)]
    return any(finding.verdict is Verdict.CONTINUE for finding in faster)


def _from_finding(
    evidence: Evidence,
    decision_id: str,
    chosen: list[CandidateFinding],
    ranked: list[CandidateFinding],
) -> Decision:
    lead = chosen[0]
    others = [f for f in ranked if f not in chosen]
    step = None
    if lead.verdict is Verdict.CONTINUE:
        open_arms = [f.arm.name for f in chosen if f.stage == lead.stage]
        propose: NextStep = next_speed if lead.stage == "speed" else next_quality
        step = propose(evidence, open_arms)
    reasons = tuple(reason for f in [*chosen, *others] for reason in f.reasons)
    return _decision(
        evidence, decision_id, lead.verdict, lead.stage, reasons, finding=lead, step=step
    )


def _decision(
    evidence: Evidence,
    decision_id: str,
    verdict: Verdict,
    stage: str,
    reasons: tuple[Reason, ...],
    *,
    finding: CandidateFinding | None = None,
    step: Mapping[str, Any] | None = None,
) -> Decision:
    speed = finding.speed if finding else None
    return Decision(
        workload=evidence.workload,
        decision_id=decision_id,
        judge_version=JUDGE_VERSION,
        stage=stage,
        verdict=verdict,
        candidate=finding.arm.name if finding else None,
        reasons=tuple(dict.fromkeys(reasons)),
        speedup=speedup_figures(speed),
        quality=quality_figures(finding.quality, evidence, finding.arm) if finding else None,
        arms=tuple(arm_figures(arm, evidence) for arm in evidence.arms),
        saving=saving_figures(finding.arm, evidence, finding.speed) if finding else None,
        next=step,
    )
