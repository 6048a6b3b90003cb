"""The figures a decision carries: per arm, speed-up, quality and money.

Unknown is None; a figure is never made up to fill a table. A control is a candidate's framework
without its compiler: measured in the same blocks, it tells the two changes apart and is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from compilegate.domain.arithmetic import deviation, mean, median, squares
from compilegate.domain.economics import (
    WEEKS_PER_YEAR,
    Range,
    break_even_seconds,
    saving_from_speedup,
)
from compilegate.domain.judging import student_t
from compilegate.domain.judging.convergence import same_quality_figures
from compilegate.domain.judging.evidence import (
    Arm,
    Evidence,
    FullRun,
    SpeedRun,
    mean_or_none,
    metrics,
    walls,
)
from compilegate.domain.judging.noninferiority import Comparison, Samples, compare
from compilegate.domain.judging.pricing import (
    baseline_walls,
    trial_usd,
    usd_per_1000_samples,
    usd_per_run,
)
from compilegate.domain.judging.speed import Segments, SpeedFinding

if TYPE_CHECKING:  # the figures of production are made without the gates of a trial
    from compilegate.domain.judging.quality import QualityFinding
from compilegate.domain.judging.speed import block_log_speedups
from compilegate.domain.workload.model import controlled_by

CONFIDENCE = 0.95


def speedup_figures(speed: SpeedFinding | None) -> dict[str, Any] | None:
    """Full-run speed-up with its interval; None before the first block."""
    if speed is None or speed.estimate is None:
        return None
    return {
        "estimate": speed.estimate,
        "interval": list(speed.interval) if speed.interval else None,
        "confidence": speed.confidence,
        "lower_bound": speed.lower_bound,
        "blocks": speed.blocks,
    }


def production_speedup_figures(evidence: Evidence, promoted: Arm) -> dict[str, Any] | None:
    """Speed-up of production's whole jobs, baseline over candidate; None unless both ran twice.

    Welch's interval on ln(wall clock), the degrees of freedom by Satterthwaite (1946).
    """
    ours = [math.log(wall) for wall in walls(promoted.full_runs)]
    timed = [*baseline_walls(evidence), *walls(evidence.baseline.probation)]
    theirs = [math.log(wall) for wall in timed]
    if len(ours) < 2 or len(theirs) < 2:
        return None
    parts = [squares(logs) / (len(logs) - 1) / len(logs) for logs in (ours, theirs)]
    total, centre = math.fsum(parts), mean(theirs) - mean(ours)
    if total == 0:
        return None
    df = total**2 / (parts[0] ** 2 / (len(ours) - 1) + parts[1] ** 2 / (len(theirs) - 1))
    half = student_t.quantile(0.5 + CONFIDENCE / 2, df) * math.sqrt(total)
    return {
        "estimate": math.exp(centre),
        "interval": [math.exp(centre - half), math.exp(centre + half)],
        "confidence": CONFIDENCE,
        "lower_bound": None,
        "blocks": 0,
    }


def quality_figures(
    finding: QualityFinding | None, evidence: Evidence, candidate: Arm
) -> dict[str, Any] | None:
    """Quality difference, candidate minus baseline, higher is better; None before full runs."""
    if finding is None:
        return None
    return {
        **_difference(finding.comparison, evidence, candidate.quality, evidence.baseline.quality),
        "interval": list(finding.interval) if finding.interval else None,
        "confidence": 1 - 2 * finding.level if finding.level else None,
        "look": finding.look,
        "provable_margin": finding.provable_margin,
        "runs_needed": finding.runs_needed,
    }


def production_quality_figures(evidence: Evidence, promoted: Arm) -> dict[str, Any] | None:
    """Quality of production's runs against every baseline run known; None before the first."""
    samples = Samples(
        candidate=evidence.oriented(metrics(promoted.probation)),
        baseline=evidence.oriented(metrics(evidence.baseline.full_runs)),
        history=evidence.oriented(evidence.quality.history),
    )
    compared = compare(samples)
    level = (1 - CONFIDENCE) / 2
    usable = compared is not None and compared.df > 0 and compared.spread > 0
    return {
        **_difference(compared, evidence, promoted.probation, evidence.baseline.full_runs),
        "interval": list(compared.interval(level)) if compared and usable else None,
        "confidence": CONFIDENCE,
        "look": None,
        "provable_margin": None,
        "runs_needed": None,
    }


def _difference(
    compared: Comparison | None,
    evidence: Evidence,
    ours: Sequence[FullRun],
    theirs: Sequence[FullRun],
) -> dict[str, Any]:
    """What both phases say of a comparison: metric, margin, estimate and the runs behind it."""
    return {
        "metric": evidence.quality.metric,
        "goal": evidence.quality.goal,
        "estimate": compared.difference if compared else None,
        "margin": evidence.quality.margin,
        "spread": compared.spread if compared else None,
        "runs": {
            "baseline": len(theirs),
            "candidate": len(ours),
            "history": len(evidence.quality.history),
        },
    }


def arm_figures(arm: Arm, evidence: Evidence, segments: Segments) -> dict[str, Any]:
    """One arm's measured figures; throughput in samples per second of steady state."""
    steady = segments[arm.name]
    rates = [
        run.samples_per_step / segment.steady_step_seconds
        for run in arm.speed
        if (segment := steady.get(run.block)) and run.samples_per_step
    ]
    values = metrics(arm.full_runs)
    records = [run.record for run in arm.runs]
    compilers = [item for record in records if isinstance(item := record.get("compiler"), dict)]
    return {
        "name": arm.name,
        "samples_per_second": mean_or_none(rates),
        "samples_per_second_interval": _interval(rates),
        "step_seconds_median": _median_step(arm.speed),
        "warm_up_steps": max((s.warm_up_steps for s in steady.values() if s), default=None),
        "compile_seconds_cold": _largest(record.get("cold_compile_seconds") for record in records),
        "compile_seconds_warm": _median([run.compile_seconds for run in arm.speed if run.finished]),
        "recompiles": _largest(item.get("recompiles") for item in compilers),
        "graph_breaks": _largest(item.get("graph_breaks") for item in compilers),
        "graphs": _largest(item.get("graphs") for item in compilers),
        "peak_memory_gib": _largest(record.get("peak_memory_gib") for record in records),
        "usd_per_hour": arm.usd_per_hour,
        "usd_per_1000_samples": usd_per_1000_samples(arm, mean_or_none(rates)),
        "usd_per_run": usd_per_run(arm, evidence, segments),
        "metric_mean": mean_or_none(values),
        "metric_sd": deviation(values) if len(values) > 1 else None,
        "runs": len(arm.full_runs),
        "failed_runs": sum(not run.finished for run in arm.runs),
    }


def saving_figures(
    candidate: Arm, evidence: Evidence, segments: Segments, speed: SpeedFinding
) -> dict[str, Any] | None:
    """What the measured speed-up is worth (economics.saving_from_speedup), None if unpriced."""
    base = usd_per_run(evidence.baseline, evidence, segments)
    if base is None or speed.estimate is None or evidence.runs_per_week is None:
        return None
    spent, paid_for = trial_usd(evidence), speedup_paid_for(candidate, evidence, speed)
    saving = saving_from_speedup(
        usd_per_run=base,
        runs_per_week=evidence.runs_per_week,
        speedup=paid_for[0],
        interval=Range(*paid_for[1]) if paid_for[1] else None,
        trial=spent,
        price_ratio=evidence.price_ratio(candidate),
    )
    bounds, runs = saving.interval_usd_per_year, evidence.runs_per_week * WEEKS_PER_YEAR
    return {
        "usd_per_run": saving.usd_per_run,
        "interval_usd_per_run": [bounds.low / runs, bounds.high / runs] if bounds else None,
        "usd_per_run_baseline": base,
        "usd_per_year": saving.usd_per_year,
        "interval_usd_per_year": [bounds.low, bounds.high] if bounds else None,
        "trial_usd": spent,
        "payback_runs": saving.payback_runs,
        "break_even_run_minutes": break_even_run_minutes(candidate, evidence, segments),
        "same_quality": same_quality_figures(candidate, evidence, segments),
    }


def speedup_paid_for(
    candidate: Arm, evidence: Evidence, speed: SpeedFinding
) -> tuple[float, tuple[float, float] | None]:
    """The speed-up that money is reckoned with, and its interval.

    Whole jobs are what is paid for: where they gain less than the short blocks, start-up and
    evaluation included, theirs is taken.
    """
    gate = (speed.estimate or 1.0, speed.interval)
    whole = production_speedup_figures(evidence, candidate)
    if whole is None or whole["estimate"] >= gate[0]:
        return gate
    low, high = whole["interval"]
    return whole["estimate"], (low, high)


def break_even_run_minutes(candidate: Arm, evidence: Evidence, segments: Segments) -> float | None:
    """Length of a baseline run from which the candidate is faster, its overhead included.

    Overhead is what the candidate's warm-up and compilation cost beyond the baseline's; the
    steady speed-up is that of whole runs without it. None when no run is long enough.
    """
    pairs = [
        (base, mine)
        for block, mine in segments[candidate.name].items()
        if mine and (base := segments[evidence.baseline.name].get(block))
    ]
    if not pairs:
        return None
    overhead = mean([mine.overhead_seconds - base.overhead_seconds for base, mine in pairs])
    n_base, n_mine = evidence.baseline.full_run_steps or 1, candidate.full_run_steps or 1
    steady = math.exp(
        mean(
            [
                math.log(base.steady_step_seconds * n_base / (mine.steady_step_seconds * n_mine))
                for base, mine in pairs
            ]
        )
    )
    seconds = break_even_seconds(max(overhead, 0.0), steady)
    return None if seconds is None else seconds / 60


def _interval(values: Sequence[float]) -> list[float] | None:
    n = len(values)
    if n < 2:
        return None
    half = student_t.quantile(0.5 + CONFIDENCE / 2, n - 1) * deviation(values) / math.sqrt(n)
    return [mean(values) - half, mean(values) + half]


def _median_step(runs: Iterable[SpeedRun]) -> float | None:
    return _median([median(run.step_seconds) for run in runs if run.step_seconds])


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _largest(values: Iterable[object]) -> float | None:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return max(numbers, default=None)


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
    reasons = [str(run.record["reason"]) for run in control.speed if run.record.get("reason")]
    return reasons[-1] if reasons else "none of its blocks can be compared with the baseline's"


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
