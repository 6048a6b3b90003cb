"""Quality of one candidate: by its final weights where they prove it, else by the gate."""

from __future__ import annotations

from dataclasses import replace

from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.identity import identity_of
from compilegate.domain.judging.power import Design
from compilegate.domain.judging.quality import QualityFinding, QualityOutcome, judge_full_runs

# What the gate has settled stays settled.
DECIDED = frozenset({QualityOutcome.HELD, QualityOutcome.WORSE, QualityOutcome.CRASHED})


def judge_quality_of(arm: Arm, evidence: Evidence, design: Design) -> QualityFinding:
    """The gate's finding, or that quality is held where identity proves what it leaves open."""
    identity = identity_of(arm, evidence.baseline)
    finding = replace(judge_full_runs(arm, evidence, design), identity=identity)
    if identity is None or not identity.proven or finding.outcome in DECIDED:
        return finding
    return replace(
        finding,
        outcome=QualityOutcome.HELD,
        reason="both arms trained the same models, so a loss is ruled out",
        # No look decided: an interval would be that of a question which is no longer asked.
        look=None,
        level=None,
        lacks_baseline_only=False,
    )
