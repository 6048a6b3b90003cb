"""What would change the verdict: what to ask for, from figures of the trial and of the judge."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from compilegate.domain.judging.outlook import proof_outlook, runs_that_pay
from compilegate.report.measured import Measured
from compilegate.report.text import paragraphs
from compilegate.report.trial_report import TrialReport

# Reasons by what helps against them, in the order in which it is said.
KINDS = {
    "quality_open": {"quality_inconclusive", "quality_unsettled", "underpowered"},
    "speed_open": {"speed_inconclusive", "speed_unsettled"},
    "full_jobs": {"full_run_disagrees", "full_run_unmeasured"},
    "unproven": ("saving_unproven", "full_run_unproven", "full_run_implausible"),
    "limits": (
        "evidence_missing", "trial_over_budget", "price_unknown", "trial_over_time",
        "too_many_rounds",
    ),
    "out_of_time": {"trial_over_time", "too_many_rounds"},
    "objections": (
        "treatment_not_applied", "arms_differ", "runs_repeated", "unequal_initial_loss",
        "unequal_initial_weights", "unequal_work", "evaluation_sets_differ", "evidence_invalid",
        "clock_implausible", "evidence_overwritten",
    ),
}  # fmt: skip


def recommendations(trial: TrialReport) -> list[str]:
    """Sentences, most useful first (assets/changes.txt.j2)."""
    sentences = paragraphs(
        "changes", trial=trial, **KINDS, ceil=math.ceil, run_length=_run_length,
        proof_outlook=proof_outlook, runs_that_pay=runs_that_pay,
    )  # fmt: skip
    return list(dict.fromkeys(sentences))


@dataclass(frozen=True)
class RunLength:
    """From how many steps on a run gains what is required, None if never; seconds of a step."""

    steps: int | None
    gain: float
    baseline_step: float
    candidate_step: float
    overhead: float


def _run_length(measured: Measured) -> RunLength | None:
    """How long a run must be until the compile time is earned back with the required gain."""
    _, goal = measured.thresholds
    base, ours = measured.baseline.steady, measured.lead.steady
    steps = measured.lead.arm.full_run_steps
    if not base or not ours or not steps or steps != measured.baseline.arm.full_run_steps:
        return None
    m_b, m_c = (statistics.fmean(s.steady_step_seconds for s in arm) for arm in (base, ours))
    o_b, o_c = (statistics.fmean(s.overhead_seconds for s in arm) for arm in (base, ours))
    pays = m_b > goal * m_c
    needed = math.ceil((goal * o_c - o_b) / (m_b - goal * m_c)) if pays else None
    return RunLength(needed, m_b / m_c, m_b, m_c, o_c)
