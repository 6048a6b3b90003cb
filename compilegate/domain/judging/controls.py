"""What the controls say: a control is a candidate's framework without its compiler.

A compiler that exists only with an older framework changes two things at once. The control,
measured in the same blocks, tells them apart; it is judged by nobody and promotes nothing.
"""

from __future__ import annotations

import math
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.figures import arm_figures
from compilegate.domain.judging.speed import Segments, block_log_speedups
from compilegate.domain.workload.model import controlled_by


def control_figures(control: Arm, evidence: Evidence, segments: Segments) -> dict[str, Any]:
    """The control's own figures as an arm's; full-run speed-ups against both neighbours.

    ``speedup``: the control over the baseline. ``compiler_speedup``: the candidate over the
    control, from the blocks that all three completed. None where no block tells; ``reason``
    says why the control was not measured.
    """
    name = controlled_by(control.name)
    candidate = evidence.arm(name)
    downgrade = block_log_speedups(control, evidence, segments)
    return {
        **arm_figures(control, evidence, segments),
        "candidate": name,
        "blocks": len(downgrade),
        "speedup": _ratio(downgrade),
        "compiler_speedup": _ratio(_compiler_alone(control, candidate, segments)),
        "reason": None if downgrade else _why_not_measured(control),
    }


def _why_not_measured(control: Arm) -> str:
    if not control.speed:
        return "no block of it was run"
    told = [str(run.detail["reason"]) for run in control.speed if run.detail.get("reason")]
    return told[-1] if told else "none of its blocks can be compared with the baseline's"


def _compiler_alone(control: Arm, candidate: Arm | None, segments: Segments) -> list[float]:
    """ln of the control's full-run seconds over the candidate's, block by block."""
    if candidate is None:
        return []
    ours, theirs = segments[candidate.name], segments[control.name]
    steps = candidate.full_run_steps or 1, control.full_run_steps or 1
    return [
        math.log(native.full_run_seconds(steps[1]) / mine.full_run_seconds(steps[0]))
        for block in sorted(ours.keys() & theirs.keys())
        if (mine := ours[block]) is not None and (native := theirs[block]) is not None
    ]


def _ratio(logs: list[float]) -> float | None:
    return math.exp(mean(logs)) if logs else None
