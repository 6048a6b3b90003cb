"""The one step that would most cheaply settle an open trial (design contract, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compilegate.domain.evidence import Evidence
from compilegate.domain.speed import LOOKS
from compilegate.domain.workload import BASELINE


def next_speed(evidence: Evidence, open_arms: Sequence[str]) -> dict[str, Any]:
    """More blocks, up to the next look; losers are no longer among ``open_arms``.

    The first round is a single block, because that is enough to stop most losers.
    """
    plan = evidence.plan
    done = {run.block for run in evidence.baseline.speed}
    first = max(done) + 1 if done else 0
    looks = [look for look in LOOKS if len(done) < look <= plan.max_blocks] or [plan.max_blocks]
    blocks = max(1, min(looks[0] - len(done), plan.blocks_per_round)) if done else 1
    usd = None if plan.usd_per_block is None else round(plan.usd_per_block * blocks, 4)
    return {
        "stage": "speed",
        "block": first,
        "blocks": blocks,
        "steps": plan.speed_steps,
        "arms": [BASELINE, *open_arms],
        "usd": usd,
        "why": f"{blocks} short block{'s' * (blocks > 1)}, all arms back to back, "
        "to measure the full-run speed-up",
    }


def next_quality(evidence: Evidence, open_arms: Sequence[str]) -> dict[str, Any]:
    """The full runs that are missing, one per arm and seed."""
    plan = evidence.plan
    seeds = plan.seeds[: evidence.policy.max_quality_runs]
    done = {arm.name: {run.seed for run in arm.quality} for arm in evidence.arms}
    runs = [
        {"arm": name, "seed": seed}
        for seed in seeds
        for name in (BASELINE, *open_arms)
        if seed not in done[name]
    ]
    usd = None if plan.usd_per_quality_run is None else plan.usd_per_quality_run * len(runs)
    return {
        "stage": "quality",
        "mode": "shadow",
        "runs": runs,
        "usd": None if usd is None else round(usd, 4),
        "why": f"{len(seeds)} full runs per arm, same seeds, to prove that quality is held",
    }
