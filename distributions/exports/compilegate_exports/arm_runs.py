"""A trial as runs of an experiment tracker: one per arm, with parameters, figures and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.formats import number, pair
from compilegate.domain.judging.measured import MeasuredArm
from compilegate.domain.workload.model import BASELINE
from compilegate.report.trial_report import Document, TrialReport

Point = tuple[int, float]
PLANNED = (
    "compiler", "compile_mode", "instance_type", "instance_count", "precision", "batch_size",
    "learning_rate", "distribution",
)  # fmt: skip


@dataclass(frozen=True)
class ArmRun:
    """One arm; ``series`` are metrics by step: the block, the run's place in time, the step.

    ``at`` is when the trial was decided, epoch seconds.
    """

    workload: str
    trial: str
    arm: str
    at: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    figures: Mapping[str, float]
    series: Mapping[str, Sequence[Point]]

    @property
    def name(self) -> str:
        """``TRIAL-ARM``, the run's name among those of its workload."""
        return f"{self.trial}-{self.arm}"


def arm_runs(report: TrialReport, *, trial: str, at: int) -> list[ArmRun]:
    """A run per measured arm, the baseline first; none where nothing was measured."""
    figures = {arm.name: arm for arm in report.arms}
    measured = report.measured.arms if report.measured else ()
    return [
        ArmRun(
            workload=report.workload,
            trial=trial,
            arm=arm.name,
            at=at,
            params=_params(report, arm),
            tags=_tags(report, trial, arm.name),
            figures=_figures(report, arm.name, write(figures.get(arm.name)) or {}),
            series=_series(report, arm),
        )
        for arm in measured
    ]


def _params(report: TrialReport, arm: MeasuredArm) -> dict[str, str]:
    planned = next((one for one in report.planned_arms if one.name == arm.name), None)
    planned_values = {} if planned is None else {name: getattr(planned, name) for name in PLANNED}
    changed = {**planned_values, **arm.arm.overrides}
    return {name: str(value) for name, value in changed.items() if value is not None}


def _tags(report: TrialReport, trial: str, arm: str) -> dict[str, str]:
    """What tells the run, and what was decided; the same words on every run of the trial."""
    described = {
        "workload": report.workload, "trial": trial, "arm": arm,
        "role": BASELINE if arm == BASELINE else "candidate",
        "verdict": str(report.verdict), "candidate": report.candidate,
        "decision_id": report.judged.decision_id, "judge_version": report.judged.judge_version,
        "reasons": "; ".join(one.message for one in report.reasons if one.arm in (None, arm)),
    }  # fmt: skip
    return {f"compilegate.{name}": value for name, value in described.items() if value}


def _figures(report: TrialReport, arm: str, figures: Document) -> dict[str, float]:
    """The figures of the arm; of the candidate decided on also its comparison."""
    values = dict(figures)
    if arm == report.candidate:
        judged = report.judged
        for what, compared in (
            ("speedup", judged.speedup),
            ("quality_difference", judged.quality),
        ):
            values[what] = None if compared is None else compared.estimate
            values[f"{what}_interval"] = None if compared is None else compared.interval
        if judged.saving and report.claims.money.has_amount:
            values["saving_usd_per_year"] = judged.saving.usd_per_year
    return dict(_finite(values))


def _finite(values: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for name, value in values.items():
        figure, ends = number(value), pair(value)
        if figure is not None:
            yield name, figure
        elif ends is not None:
            base = name.removesuffix("_interval")
            yield from ((f"{base}_low", ends[0]), (f"{base}_high", ends[1]))


def _series(report: TrialReport, arm: MeasuredArm) -> dict[str, Sequence[Point]]:
    blocks = {number_: block.samples_per_second for number_, block in arm.blocks.items()}
    runs = arm.arm.full_runs
    series = {
        "speed/samples_per_second": _points(blocks.items()),
        f"full_runs/{report.metric}": _points((run.order, run.metric) for run in runs),
        "full_runs/wall_seconds": _points((run.order, run.wall_seconds) for run in runs),
        **{f"loss/run_{run.order}": _points((one.step, one.loss) for one in run.loss_curve)
           for run in runs},
    }  # fmt: skip
    return {name: points for name, points in series.items() if points}


def _points(values: Iterable[tuple[Any, Any]]) -> list[Point]:
    """By step; what is no finite number is left out, as a crashed run's metric is."""
    return sorted((int(step), value) for step, raw in values if (value := number(raw)) is not None)
