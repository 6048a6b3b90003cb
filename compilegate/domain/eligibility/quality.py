"""Can quality be proven at all? The spread of past runs decides."""

from __future__ import annotations

from compilegate.domain.arithmetic import mean
from compilegate.domain.eligibility.context import WORKLOAD_FILE
from compilegate.domain.formats import significant
from compilegate.domain.judging.quality import TELLING_HISTORY
from compilegate.domain.planning.proof import plan_proof
from compilegate.domain.reasons import Reason, info, warn
from compilegate.domain.workload.model import Workload

# Of the metric's level: what a margin may be before it is doubted.
WIDE = 0.5
POWER = "the judge's own design (domain/judging/power.py)"


def history_rule(workload: Workload, *, candidates: int) -> tuple[Reason, ...]:
    """Says what is missing, or why the plan would refuse; asks the plan's own question."""
    quality, proof = workload.quality, plan_proof(workload, candidates=candidates)
    if proof is not None and proof.refused is not None:
        return (
            warn(
                "underpowered", "quality.margin",
                f"no trial would be planned: {proof.refused.message}",
                fix=proof.refused.fix, source=POWER,
            ),
        )  # fmt: skip
    wide = _wide_margin(workload)
    if len(quality.history) >= TELLING_HISTORY:
        return wide
    return (
        *wide,
        info(
            "history_missing", "quality.history",
            f"{len(quality.history)} past runs are on record; from {TELLING_HISTORY} on, fewer "
            "new runs are needed, and the plan knows how much the metric varies",
            fix=f"list the final {quality.metric} of past runs",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def _wide_margin(workload: Workload) -> tuple[Reason, ...]:
    """A share that may fall by half is no quality kept; most likely the margin is in percent."""
    quality = workload.quality
    if quality.goal != "maximize" or not quality.history:
        return ()
    level = mean(quality.history)
    share = all(0 <= value <= 1 for value in quality.history)
    if not share or quality.margin <= WIDE * level:
        return ()
    return (
        warn(
            "margin_wide", "quality.margin",
            f"a margin of {quality.margin:g} lets {quality.metric} fall by more than half of its "
            f"{significant(level)}, so nearly every candidate would pass",
            fix="set the loss that you would accept, in the metric's own unit",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip
