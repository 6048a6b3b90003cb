"""Who makes a trial's full runs: the trial itself, or production as it trains anyway."""

from __future__ import annotations

from dataclasses import dataclass

from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import Registration
from compilegate.domain.production.trained_job import TrainedJob
from compilegate.domain.records.runs import TRAIN

SHADOW = "shadow"


@dataclass(frozen=True)
class QualityMode:
    """The mode that policy asks for and the one that a trial uses; ``why`` where they differ.

    ``beside``: production trains the same job meanwhile, so that its own baseline runs are
    evidence as well.
    """

    asked: str
    used: str
    why: str | None = None
    beside: bool = False


def quality_mode(
    measured: TrainedJob,
    registration: Registration | None,
    produced: TrainedJob | None,
    history: WorkloadHistory,
) -> QualityMode:
    """The mode of a trial of ``measured``.

    ``registration`` and ``produced``, the spec it names, say what production trains; None where
    nothing is registered. ``history`` is the workload's.
    """
    policy = measured.workload.policy.quality_runs
    why = _why_not(measured, registration, produced, history)
    if why is not None:
        return QualityMode(policy, SHADOW, why if policy != SHADOW else None)
    return QualityMode(policy, policy, beside=True)


def _why_not(
    measured: TrainedJob,
    registration: Registration | None,
    produced: TrainedJob | None,
    history: WorkloadHistory,
) -> str | None:
    """Why production cannot carry runs of the trial, None where it can."""
    if registration is None or produced is None:
        return "the workload is not registered with production (compilegate register)"
    if not registration.active:
        return "the workload was retired from production (compilegate register brings it back)"
    changed = _changed(measured, produced)
    if changed:
        return f"production trains another job, which differs in {changed}: register the file again"
    # A team that starts its own jobs reads the flag, and that says baseline until the verdict.
    if registration.schedule is None and not _has_trained(history):
        return (
            "schedule.cron is not set and no production run has gone through TRAIN yet "
            "(compilegate train), so nothing says that any will"
        )
    return None


def _changed(measured: TrainedJob, produced: TrainedJob) -> str:
    """Names of what differs between two jobs, empty where they are the same."""
    ours, theirs = measured.fields, produced.fields
    differing = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
    if measured.code != produced.code:
        differing.append("the source")
    return ", ".join(differing)


def _has_trained(history: WorkloadHistory) -> bool:
    return any(run.launched_by == TRAIN for run in history.runs)
