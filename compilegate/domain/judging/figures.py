"""The figures a decision carries: per arm, speed-up, quality and money.

Unknown is None; a figure is never made up to fill a table. The types are in decision.py. A
control is a candidate's framework without its compiler: measured in the same blocks, it tells the
two changes apart and is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from compilegate.domain.arithmetic import deviation, mean, median
from compilegate.domain.decision import (
    ArmFigures,
    ComparedRuns,
    ControlFigures,
    IdenticalRuns,
    Interval,
    QualityFigures,
    QualityRuns,
    SavingFigures,
    SpeedSource,
    Speedup,
)
from compilegate.domain.economics import (
    WEEKS_PER_YEAR,
    Range,
    break_even_seconds,
    saving_from_speedup,
)
from compilegate.domain.judging import statistics
from compilegate.domain.judging.evidence import (
    Arm,
    Evidence,
    FullRun,
    SpeedRun,
    mean_or_none,
    metrics,
)
from compilegate.domain.judging.speed import Segments, SpeedFinding
from compilegate.domain.judging.statistics import Comparison, Samples, compare
from compilegate.domain.judging.whole_job import (
    Source,
    WholeJob,
    same_quality_figures,
    trial_usd,
    usd_per_1000_samples,
    usd_per_run,
)

if TYPE_CHECKING:  # the figures of production are made without the gates of a trial
    from compilegate.domain.judging.evaluation import Evaluation
    from compilegate.domain.judging.quality import QualityFinding
from compilegate.domain.judging.speed import block_log_speedups
from compilegate.domain.workload.model import controlled_by

CONFIDENCE = 0.95


def speedup_of(speed: SpeedFinding, whole: WholeJob | None) -> Speedup | None:
    """Speed-up of whole jobs with its interval; None before there is a block or full run."""
    if whole is None:
        return None
    return Speedup(
        estimate=whole.speedup,
        interval=whole.interval,
        confidence=CONFIDENCE,
        lower_bound=speed.lower_bound,
        blocks=speed.blocks,
        full_runs=whole.measured.candidate_runs if whole.measured else 0,
        predicted=_source(whole.predicted) if whole.predicted else None,
        measured=_source(whole.measured) if whole.measured else None,
        weight=whole.weight,
        disagreement=whole.disagreement,
    )


def _source(source: Source) -> SpeedSource:
    half = statistics.quantile(0.5 + CONFIDENCE / 2, source.df) * math.sqrt(source.variance)
    return SpeedSource(
        estimate=math.exp(source.log),
        interval=(math.exp(source.log - half), math.exp(source.log + half)),
        runs=ComparedRuns(source.baseline_runs, source.candidate_runs),
    )


def quality_figures(
    finding: QualityFinding, evidence: Evidence, candidate: Arm, evaluation: Evaluation | None
) -> QualityFigures:
    """Quality by the trial's full runs; where weights alone decide, the difference is nought."""
    figures = replace(
        _difference(finding.comparison, evidence, candidate.quality, evidence.baseline.quality),
        interval=finding.interval,
        confidence=1 - 2 * finding.level if finding.level else None,
        look=finding.look,
        provable_margin=finding.provable_margin,
        runs_needed=finding.runs_needed,
        evaluation=evaluation.figures if evaluation else None,
    )
    seen = finding.identity
    if seen is None:
        return figures
    alone = seen.proven and finding.level is None
    return replace(
        figures,
        estimate=0.0 if alone else figures.estimate,
        identical=IdenticalRuns(seen.models, seen.unequal, seen.proven),
    )


def production_quality_figures(evidence: Evidence, promoted: Arm) -> QualityFigures:
    """Quality of production's runs against every baseline run known."""
    samples = Samples(
        candidate=evidence.oriented(metrics(promoted.probation)),
        baseline=evidence.oriented(metrics(evidence.baseline.full_runs)),
        history=evidence.oriented(evidence.quality.history),
    )
    compared = compare(samples)
    level = (1 - CONFIDENCE) / 2
    usable = compared is not None and compared.df > 0 and compared.spread > 0
    return replace(
        _difference(compared, evidence, promoted.probation, evidence.baseline.full_runs),
        interval=compared.interval(level) if compared and usable else None,
        confidence=CONFIDENCE,
    )


def _difference(
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


def arm_figures(arm: Arm, evidence: Evidence, segments: Segments) -> ArmFigures:
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
    return ArmFigures(
        name=arm.name,
        samples_per_second=mean_or_none(rates),
        samples_per_second_interval=_interval(rates),
        step_seconds_median=_median_step(arm.speed),
        warm_up_steps=max((s.warm_up_steps for s in steady.values() if s), default=None),
        compile_seconds_cold=_largest(record.get("cold_compile_seconds") for record in records),
        compile_seconds_warm=_median([run.compile_seconds for run in arm.speed if run.finished]),
        recompiles=_largest(item.get("recompiles") for item in compilers),
        graph_breaks=_largest(item.get("graph_breaks") for item in compilers),
        graphs=_largest(item.get("graphs") for item in compilers),
        peak_memory_gib=_largest(record.get("peak_memory_gib") for record in records),
        usd_per_hour=arm.usd_per_hour,
        usd_per_1000_samples=usd_per_1000_samples(arm, mean_or_none(rates)),
        usd_per_run=usd_per_run(arm, evidence, segments),
        metric_mean=mean_or_none(values),
        metric_sd=deviation(values) if len(values) > 1 else None,
        runs=len(arm.full_runs),
        failed_runs=sum(not run.finished for run in arm.runs),
    )


def saving_figures(
    candidate: Arm, evidence: Evidence, segments: Segments, whole: WholeJob | None
) -> SavingFigures | None:
    """What whole jobs' speed-up is worth (economics.saving_from_speedup), None if unpriced."""
    base = usd_per_run(evidence.baseline, evidence, segments)
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
        break_even_run_minutes=break_even_run_minutes(candidate, evidence, segments),
        same_quality=same_quality_figures(candidate, evidence, segments),
    )


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


def _interval(values: Sequence[float]) -> Interval | None:
    n = len(values)
    if n < 2:
        return None
    half = statistics.quantile(0.5 + CONFIDENCE / 2, n - 1) * deviation(values) / math.sqrt(n)
    return mean(values) - half, mean(values) + half


def _median_step(runs: Iterable[SpeedRun]) -> float | None:
    return _median([median(run.step_seconds) for run in runs if run.step_seconds])


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _largest(values: Iterable[object]) -> float | None:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return max(numbers, default=None)


def control_figures(control: Arm, evidence: Evidence, segments: Segments) -> ControlFigures:
    """The control's own figures as an arm's, and full-run speed-ups against both neighbours."""
    name = controlled_by(control.name)
    candidate = evidence.arm(name)
    downgrade = block_log_speedups(control, evidence, segments)
    return ControlFigures(
        **vars(arm_figures(control, evidence, segments)),
        candidate=name,
        blocks=len(downgrade),
        speedup=_ratio(downgrade),
        compiler_speedup=_ratio(_compiler_alone(control, candidate, segments)),
        reason=None if downgrade else _why_not_measured(control),
    )


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
