"""What a production run recorded of itself, by the ledger's entry of any release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.failures import COMPLETED
from compilegate.domain.outside import is_figure
from compilegate.domain.records.runs import ProductionRun


def metric_of(run: ProductionRun) -> float | None:
    """What it reached of the workload's metric, None where it recorded no finite number."""
    return _figure(run.result.get("metric"))


def wall_seconds_of(run: ProductionRun) -> float | None:
    """Seconds of wall clock of the whole job; one that took no time was not measured."""
    seconds = _figure(run.result.get("wall_seconds"))
    return seconds if seconds is not None and seconds > 0 else None


def work_of(run: ProductionRun) -> tuple[float, float, float] | None:
    """The steps, samples and tokens that it did, 0 where it recorded none.

    None before they were added up. Steps of its lines, or fewer that it says itself.
    """
    work = run.result.get("work")
    if not isinstance(work, Mapping):
        return None
    steps, said = _figure(work.get("steps")) or 0.0, _figure(run.result.get("steps"))
    steps = min(steps or said or 0.0, said or steps)
    samples, tokens = (
        steps * (_figure(work.get(key)) or 0.0) for key in ("samples_per_step", "tokens_per_step")
    )
    return steps, samples, tokens


def applied(run: ProductionRun) -> bool:
    """Whether its own record says that the arm's change was applied."""
    return run.result.get("applied") is True


def failed(run: ProductionRun) -> bool:
    """Whether it did not train to its end; unknown of one that left no evidence."""
    return run.status != COMPLETED or run.result.get("finished") is False


def problem_of(run: ProductionRun) -> str:
    """What went wrong with it, without a dot at the end; empty where nothing did."""
    return str(run.reason or run.result.get("reason") or "").rstrip(".")


def _figure(value: Any) -> float | None:
    # Not formats.number: the functions that watch production load nothing that makes text.
    return float(value) if is_figure(value) and not isinstance(value, bool) else None
