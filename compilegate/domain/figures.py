"""The figures a decision carries: per arm, speed-up, quality and money.

Unknown is None; a figure is never made up to fill a table.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from compilegate.domain import student_t
from compilegate.domain.economics import Range, saving_from_speedup
from compilegate.domain.evidence import Arm, Evidence, SpeedRun
from compilegate.domain.quality import QualityFinding
from compilegate.domain.speed import SpeedFinding, segments
from compilegate.domain.steady_state import Segment

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


def quality_figures(
    finding: QualityFinding | None, evidence: Evidence, candidate: Arm
) -> dict[str, Any] | None:
    """Quality difference, candidate minus baseline, higher is better; None before full runs."""
    if finding is None:
        return None
    return {
        "metric": evidence.quality.metric,
        "goal": evidence.quality.goal,
        "estimate": finding.estimate,
        "interval": list(finding.interval) if finding.interval else None,
        "margin": evidence.quality.margin,
        "provable_margin": finding.provable_margin,
        "runs_needed": finding.runs_needed,
        "runs": {
            "baseline": len(evidence.baseline.quality),
            "candidate": len(candidate.quality),
        },
    }


def arm_figures(arm: Arm, evidence: Evidence) -> dict[str, Any]:
    """One arm's measured figures; throughput in samples per second of steady state."""
    steady = segments(arm, evidence.baseline)
    rates = [
        run.samples_per_step / segment.steady_step_seconds
        for run in arm.speed
        if (segment := steady.get(run.block)) and run.samples_per_step
    ]
    metrics = [run.metric for run in arm.quality if run.metric is not None]
    details = [run.detail for run in arm.runs]
    compilers = [found for detail in details if isinstance(found := detail.get("compiler"), dict)]
    return {
        "name": arm.name,
        "samples_per_second": statistics.fmean(rates) if rates else None,
        "samples_per_second_interval": _interval(rates),
        "step_seconds_median": _median_step(arm.speed),
        "warm_up_steps": max((s.warm_up_steps for s in steady.values() if s), default=None),
        "compile_seconds_cold": _largest(detail.get("cold_compile_seconds") for detail in details),
        "compile_seconds_warm": _median([run.compile_seconds for run in arm.speed if run.finished]),
        "recompiles": _largest(found.get("recompiles") for found in compilers),
        "graph_breaks": _largest(found.get("graph_breaks") for found in compilers),
        "graphs": _largest(found.get("graphs") for found in compilers),
        "peak_memory_gib": _largest(detail.get("peak_memory_gib") for detail in details),
        "usd_per_run": usd_per_run(arm, evidence),
        "metric_mean": statistics.fmean(metrics) if metrics else None,
        "metric_sd": statistics.stdev(metrics) if len(metrics) > 1 else None,
        "runs": len(arm.quality),
        "failed_runs": sum(not run.finished for run in arm.runs),
    }


def full_run_hours(arm: Arm, evidence: Evidence) -> float | None:
    """Hours of a production run: measured on full runs, else extrapolated from the blocks."""
    walls = [run.wall_seconds for run in arm.quality if run.finished and run.wall_seconds]
    if walls:
        return statistics.fmean(walls) / 3600
    found: list[Segment] = [s for s in segments(arm, evidence.baseline).values() if s]
    if found:
        return statistics.fmean(s.full_run_seconds(arm.full_run_steps) for s in found) / 3600
    return None


def usd_per_run(arm: Arm, evidence: Evidence) -> float | None:
    """Price of a production run of this arm: hours x price of the whole cluster."""
    hours = full_run_hours(arm, evidence)
    return None if hours is None or arm.usd_per_hour is None else hours * arm.usd_per_hour


def saving_figures(
    candidate: Arm, evidence: Evidence, speed: SpeedFinding
) -> dict[str, Any] | None:
    """What the measured speed-up is worth (economics.saving_from_speedup), None if unpriced."""
    base, rate = usd_per_run(evidence.baseline, evidence), evidence.baseline.usd_per_hour
    if base is None or rate is None or speed.estimate is None or evidence.runs_per_week is None:
        return None
    saving = saving_from_speedup(
        usd_per_run=base,
        runs_per_week=evidence.runs_per_week,
        speedup=speed.estimate,
        interval=Range(*speed.interval) if speed.interval else None,
        trial=evidence.plan.spent_usd,
        price_ratio=(candidate.usd_per_hour or rate) / rate,
    )
    bounds = saving.interval_usd_per_year
    return {
        "usd_per_run": saving.usd_per_run,
        "usd_per_run_baseline": base,
        "usd_per_year": saving.usd_per_year,
        "interval_usd_per_year": [bounds.low, bounds.high] if bounds else None,
        "trial_usd": evidence.plan.spent_usd,
        "payback_runs": saving.payback_runs,
    }


def _interval(values: Sequence[float]) -> list[float] | None:
    n = len(values)
    if n < 2:
        return None
    half = student_t.quantile(0.5 + CONFIDENCE / 2, n - 1) * statistics.stdev(values) / math.sqrt(n)
    mean = statistics.fmean(values)
    return [mean - half, mean + half]


def _median_step(runs: Iterable[SpeedRun]) -> float | None:
    return _median([statistics.median(run.step_seconds) for run in runs if run.step_seconds])


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _largest(values: Iterable[object]) -> float | None:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return max(numbers, default=None)
