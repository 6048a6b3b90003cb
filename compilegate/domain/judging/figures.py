"""The figures that a decision shows of arms, money and production.

Unknown is None; a figure is never made up to fill a table. The types are in decision.py. A
control is a candidate's framework without its compiler: measured in the same blocks, it tells the
two changes apart and is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from compilegate.domain.arithmetic import deviation, mean, median
from compilegate.domain.decision import (
    ArmFigures,
    ControlFigures,
    QualityFigures,
    QualityRuns,
    SavingFigures,
)
from compilegate.domain.economics import (
    WEEKS_PER_YEAR,
    AtLength,
    Range,
    break_even_seconds,
    saving_from_speedup,
)
from compilegate.domain.judging.comparison import Comparison, Samples, compare
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, mean_or_none, metrics
from compilegate.domain.judging.same_quality import same_quality_figures
from compilegate.domain.judging.speed import assumed_spread, block_log_speedups
from compilegate.domain.judging.student import CONFIDENCE, interval_of
from compilegate.domain.judging.target import timed_to_target
from compilegate.domain.judging.whole_job import (
    WholeJob,
    from_steady_steps,
    full_run_hours,
    trial_usd,
    usd_per_run,
)
from compilegate.domain.workload.model import controlled_by

# Lengths that differ by as much have an answer each.
FAR = 2.0


def arm_figures(arm: Arm, evidence: Evidence) -> ArmFigures:
    """One arm's measured figures; throughput in samples per second of steady state."""
    steady = evidence.segments[arm.name]
    rates = [
        run.samples_per_step / segment.steady_step_seconds
        for run in arm.speed
        if (segment := steady.get(run.block)) and run.samples_per_step
    ]
    rate, values = mean_or_none(rates), metrics(arm.full_runs)
    records = [run.record for run in arm.runs]
    compilers = [item for record in records if isinstance(item := record.get("compiler"), dict)]
    warm = [run.compile_seconds for run in arm.speed if run.finished]
    steps = [median(run.step_seconds) for run in arm.speed if run.step_seconds]
    per_hour = arm.usd_per_hour
    return ArmFigures(
        name=arm.name,
        samples_per_second=rate,
        samples_per_second_interval=interval_of(rates),
        step_seconds_median=median(steps) if steps else None,
        warm_up_steps=max((s.warm_up_steps for s in steady.values() if s), default=None),
        compile_seconds_cold=_largest(record.get("cold_compile_seconds") for record in records),
        compile_seconds_warm=median(warm) if warm else None,
        recompiles=_largest(item.get("recompiles") for item in compilers),
        graph_breaks=_largest(item.get("graph_breaks") for item in compilers),
        graphs=_largest(item.get("graphs") for item in compilers),
        peak_memory_gib=_largest(record.get("peak_memory_gib") for record in records),
        usd_per_hour=per_hour,
        usd_per_1000_samples=per_hour / 3600 / rate * 1000 if per_hour and rate else None,
        usd_per_run=usd_per_run(arm, evidence),
        metric_mean=mean_or_none(values),
        metric_sd=deviation(values) if len(values) > 1 else None,
        runs=len(arm.full_runs),
        failed_runs=sum(not run.finished for run in arm.runs),
    )


def _largest(values: Iterable[object]) -> float | None:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return max(numbers, default=None)


def production_quality_figures(evidence: Evidence, promoted: Arm) -> QualityFigures:
    """Quality of production's runs against every baseline run known."""
    ours, theirs = promoted.probation, evidence.baseline.full_runs
    samples = Samples(
        candidate=evidence.oriented(metrics(ours)),
        baseline=evidence.oriented(metrics(theirs)),
        history=evidence.oriented(evidence.quality.history),
    )
    compared = compare(samples)
    usable = compared is not None and compared.df > 0 and compared.spread > 0
    return replace(
        difference_figures(compared, evidence, ours, theirs),
        interval=compared.interval((1 - CONFIDENCE) / 2) if compared and usable else None,
        confidence=CONFIDENCE,
    )


def difference_figures(
    compared: Comparison | None,
    evidence: Evidence,
    ours: Sequence[FullRun],
    theirs: Sequence[FullRun],
) -> QualityFigures:
    """What both phases say of a comparison: metric, margin, estimate and the runs behind it."""
    return QualityFigures(
        metric=evidence.quality.metric,
        goal=evidence.quality.goal,
        estimate=compared.difference if compared else None,
        margin=evidence.quality.margin,
        spread=compared.spread if compared else None,
        runs=QualityRuns(len(theirs), len(ours), len(evidence.quality.history)),
    )


def saving_figures(
    candidate: Arm, evidence: Evidence, whole: WholeJob | None
) -> SavingFigures | None:
    """What whole jobs' speed-up is worth (economics.saving_from_speedup), None if unpriced."""
    goes_on = timed_to_target(candidate, evidence)  # where a run ends, its script decides
    base = None if goes_on else usd_per_run(evidence.baseline, evidence)
    if base is None or whole is None or evidence.runs_per_week is None:
        return None
    spent = trial_usd(evidence)
    saving = saving_from_speedup(
        usd_per_run=base,
        runs_per_week=evidence.runs_per_week,
        speedup=whole.speedup,
        interval=Range(*whole.interval),
        trial=spent,
        price_ratio=evidence.price_ratio(candidate),
    )
    bounds, runs = saving.interval_usd_per_year, evidence.runs_per_week * WEEKS_PER_YEAR
    return SavingFigures(
        usd_per_run=saving.usd_per_run,
        interval_usd_per_run=(bounds.low / runs, bounds.high / runs) if bounds else None,
        usd_per_run_baseline=base,
        usd_per_year=saving.usd_per_year,
        interval_usd_per_year=(bounds.low, bounds.high) if bounds else None,
        trial_usd=spent,
        payback_runs=saving.payback_runs,
        break_even_run_minutes=break_even_run_minutes(candidate, evidence),
        same_quality=same_quality_figures(candidate, evidence),
    )


def break_even_run_minutes(candidate: Arm, evidence: Evidence) -> float | None:
    """Length of a baseline run from which the candidate is faster, its overhead included.

    Overhead is what the candidate's warm-up and compilation cost beyond the baseline's; the
    steady speed-up is that of whole runs without it. None when no run is long enough.
    """
    logs, overhead = _steady(candidate, evidence)
    seconds = break_even_seconds(overhead, math.exp(mean(logs))) if logs else None
    return None if seconds is None else seconds / 60


def at_scheduled_length(candidate: Arm, evidence: Evidence) -> AtLength | None:
    """The speed-up of a run of production's hours, where they are far from those measured.

    None where both are alike or one is not known, and before the first block.
    """
    asked, hours = evidence.run_hours, full_run_hours(evidence.baseline, evidence)
    logs, overhead = _steady(candidate, evidence)
    if timed_to_target(candidate, evidence) or not asked or not hours or not logs:
        return None
    if 1 / FAR < asked / hours < FAR:
        return None
    return from_steady_steps(3600 * asked, logs, assumed_spread(candidate, evidence), overhead)


def _steady(candidate: Arm, evidence: Evidence) -> tuple[list[float], float]:
    """ln(speed-up) of steady steps in each block, and seconds of overhead beyond the baseline's."""
    pairs = evidence.steady_pairs(candidate)
    n_base, n_mine = evidence.baseline.steps_or_one, candidate.steps_or_one
    if not pairs:
        return [], 0.0
    overhead = mean([mine.overhead_seconds - base.overhead_seconds for base, mine in pairs])
    logs = [
        math.log(base.steady_step_seconds * n_base / (mine.steady_step_seconds * n_mine))
        for base, mine in pairs
    ]
    return logs, max(overhead, 0.0)


def control_figures(control: Arm, evidence: Evidence) -> ControlFigures:
    """The control's own figures as an arm's, and full-run speed-ups against both neighbours."""
    name = controlled_by(control.name)
    candidate = evidence.arm(name)
    speedups = block_log_speedups(control, evidence)
    compiled: list[float] = []
    if candidate:
        compiled = [
            math.log(
                native.full_run_seconds(control.steps_or_one)
                / own.full_run_seconds(candidate.steps_or_one)
            )
            for native, own in evidence.steady_pairs(candidate, control)
        ]
    reasons = [str(run.record["reason"]) for run in control.speed if run.record.get("reason")]
    why_not = "none of its blocks can be compared with the baseline's"
    if not control.speed:
        why_not = "no block of it was run"
    return ControlFigures(
        **vars(arm_figures(control, evidence)),
        candidate=name,
        blocks=len(speedups),
        speedup=_ratio(speedups),
        compiler_speedup=_ratio(compiled),
        reason=None if speedups else [why_not, *reasons][-1],
    )


def _ratio(logs: Sequence[float]) -> float | None:
    return math.exp(mean(logs)) if logs else None
