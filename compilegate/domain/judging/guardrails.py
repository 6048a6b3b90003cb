"""Guardrails and signals: further metrics, judged on the same full runs by the same gate.

A candidate is promoted only where the first metric and every guardrail hold at the level a of
quality.py. A candidate that loses the margin of any one of them passes that one's gate with at
most a, however it fares in the others and however they depend, so no level is divided
(intersection-union test, Berger 1982). A candidate that loses nothing is turned off where any one
of them looks worse, so there the levels are divided by their number: that of the looks, of a loss
beyond doubt, and of an alarm in production (monitor.py).

A signal is judged as a guardrail is, and neither stops a trial nor prolongs it: one that does not
hold where all else promotes lets a person decide whether the flag is turned on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compilegate.domain.decision import QualityFigures
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.quality import (
    QualityFinding,
    QualityOutcome,
    judge_quality_of,
    quality_figures,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.quality import Metric


@dataclass(frozen=True)
class MetricFinding:
    """What the gate says of one guardrail or signal; ``evidence`` and ``arm`` have it as theirs."""

    evidence: Evidence
    arm: Arm
    finding: QualityFinding

    @property
    def figures(self) -> QualityFigures:
        """As the decision has them, without what stands beside the first metric."""
        figures = quality_figures(self.finding, self.evidence, self.arm, None)
        return replace(figures, equivalence=None, identical=None, outcome=self.finding.outcome)

    def reason(self, code: str, then: str = "") -> Reason:
        """What is said of it, and what follows."""
        text = f"{self.arm.name}: {self.evidence.quality.metric}: {self.finding.reason}{then}"
        return Reason(code, text, self.arm.name)


def judge_metric(
    candidate: Arm, evidence: Evidence, metric: Metric, design: Design
) -> MetricFinding:
    """The finding of one; ``design`` is that of the first metric.

    A metric that a finished run lacks proves nothing, whatever the others had.
    """
    seen = evidence.by(metric)
    arm = seen.arm(candidate.name) or candidate
    runs = [*finished(arm.quality), *finished(seen.baseline.quality)]
    silent = sum(run.metric is None for run in runs)
    if silent:
        reason = f"{silent} of {len(runs)} finished runs did not report it as a finite number"
        return MetricFinding(seen, arm, QualityFinding(QualityOutcome.UNREPORTED, reason))
    own = replace(design, history=len(metric.history))
    return MetricFinding(seen, arm, judge_quality_of(arm, seen, own))
