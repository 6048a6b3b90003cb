"""Who makes a trial's full runs: the trial itself, or production as it trains anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.production.canary import job_of
from compilegate.domain.production.registration import Registration
from compilegate.domain.production.runs import TRAIN, production_runs
from compilegate.domain.workload.model import Workload

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


@dataclass(frozen=True)
class Trained:
    """A workload and its source as one spec holds them."""

    workload: Workload
    code: str


def quality_mode(
    measured: Trained,
    registration: Registration | None,
    produced: Trained | None,
    entries: Iterable[Mapping[str, Any]],
) -> QualityMode:
    """The mode of a trial of ``measured``.

    ``registration`` and ``produced``, the spec it names, say what production trains; None where
    nothing is registered. ``entries`` are the workload's ledger.
    """
    asked = measured.workload.policy.quality_runs
    why = _why_not(measured, registration, produced, entries)
    if why is not None:
        return QualityMode(asked, SHADOW, why if asked != SHADOW else None)
    return QualityMode(asked, asked, beside=True)


def _why_not(
    measured: Trained,
    registration: Registration | None,
    produced: Trained | None,
    entries: Iterable[Mapping[str, Any]],
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
    if registration.schedule is None and not _has_trained(entries):
        return (
            "schedule.cron is not set and no production run has gone through TRAIN yet "
            "(compilegate train), so nothing says that any will"
        )
    return None


def _changed(measured: Trained, produced: Trained) -> str:
    """Names of what differs between two jobs, empty where they are the same."""
    ours, theirs = job_of(measured.workload), job_of(produced.workload)
    found = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
    if measured.code != produced.code:
        found.append("the source")
    return ", ".join(found)


def _has_trained(entries: Iterable[Mapping[str, Any]]) -> bool:
    return any(run.launched_by == TRAIN for run in production_runs(entries))
