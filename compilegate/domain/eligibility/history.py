"""Can quality be proven at all? The spread of past runs decides."""

from __future__ import annotations

import math
import statistics

from compilegate.domain import student_t
from compilegate.domain.eligibility.context import WORKLOAD_FILE
from compilegate.domain.eligibility.reason import Reason, info, warn
from compilegate.domain.workload import Workload

ENOUGH_HISTORY = 4
CHANCE = 0.8  # of proving the margin when nothing is lost, as in the judge


def history_rule(workload: Workload) -> tuple[Reason, ...]:
    """Says what is missing, or which margin the allowed runs could prove."""
    quality = workload.quality
    if len(quality.history) < ENOUGH_HISTORY:
        return (
            info(
                "history_missing", "quality.history",
                f"{len(quality.history)} past runs are on record; from {ENOUGH_HISTORY} on, fewer "
                "new runs are needed and the plan knows how much the metric varies",
                fix=f"list the final {quality.metric} of past runs",
                source=WORKLOAD_FILE,
            ),
        )  # fmt: skip
    margin = _provable(workload)
    if margin is None or margin <= quality.margin:
        return ()
    return (
        warn(
            "underpowered", "quality.margin",
            f"{quality.metric} varies by {statistics.stdev(quality.history):.3g} from run to run; "
            f"with {workload.policy.max_quality_runs} runs per arm a margin of {margin:.3g} could "
            f"be proven, not {quality.margin:.3g}",
            fix="widen the margin, allow more runs, or use a metric that varies less",
            source="two-sample t test, as the judge's",
        ),
    )  # fmt: skip


def _provable(workload: Workload) -> float | None:
    """Smallest margin that n runs per arm prove: (t_alpha + t_chance) s sqrt(2/n)."""
    runs = workload.policy.max_quality_runs
    if runs < 2:
        return None
    df = 2 * (runs - 1)
    quantiles = student_t.quantile(1 - workload.policy.alpha, df) + student_t.quantile(CHANCE, df)
    return quantiles * statistics.stdev(workload.quality.history) * math.sqrt(2 / runs)
