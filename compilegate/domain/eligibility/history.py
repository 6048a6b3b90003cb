"""Can quality be proven at all? The spread of past runs decides."""

from __future__ import annotations

from compilegate.domain.arithmetic import deviation
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.eligibility.context import WORKLOAD_FILE
from compilegate.domain.eligibility.reason import Reason, info, warn
from compilegate.domain.power import design_for
from compilegate.domain.quality import TELLING_HISTORY
from compilegate.domain.workload import Workload


def history_rule(workload: Workload) -> tuple[Reason, ...]:
    """Says what is missing, or which margin the allowed runs could prove."""
    quality = workload.quality
    if len(quality.history) < TELLING_HISTORY:
        return (
            info(
                "history_missing", "quality.history",
                f"{len(quality.history)} past runs are on record; from {TELLING_HISTORY} on, fewer "
                "new runs are needed and the plan knows how much the metric varies",
                fix=f"list the final {quality.metric} of past runs",
                source=WORKLOAD_FILE,
            ),
        )  # fmt: skip
    spread, margin = deviation(quality.history), _provable(workload)
    if margin is None or margin <= quality.margin:
        return ()
    return (
        warn(
            "underpowered", "quality.margin",
            f"{quality.metric} varies by {spread:.3g} from run to run; with up to "
            f"{workload.policy.max_quality_runs} runs a margin of {margin:.3g} could be proven "
            f"with 80 % chance, not {quality.margin:.3g}",
            fix="widen the margin, allow more runs, or use a metric that varies less",
            source="the judge's own design (domain/power.py)",
        ),
    )  # fmt: skip


def _provable(workload: Workload) -> float | None:
    """Smallest margin that the runs allowed prove, in the metric's unit."""
    history = workload.quality.history
    design = design_for(
        workload.policy,
        history=len(history),
        candidates=max(len(workload.candidates), 1),
        runs_remaining=workload.schedule.runs_per_week * WEEKS_PER_YEAR,
    )
    return None if design is None else design.best_margin() * deviation(history)
