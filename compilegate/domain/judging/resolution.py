"""Which gains a policy can prove, before anything is measured.

The judge's own answer (whole_job.py) on runs of a true speed-up that differ by nothing, so that
only what is assumed of their spread keeps the proof from them. Runs that differ take more: a gain
that cannot be proven here cannot be proven anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.judging.design import LIKELY, looks
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.judging.student import quantile
from compilegate.domain.judging.whole_job import Agreement, confirm, estimate_whole_job
from compilegate.domain.spreads import ASSUMED, Spreads
from compilegate.domain.workload.model import BASELINE, Policy

# The gains of which it is said, each proven to be one at all.
GAINS = (1.005, 1.02, 1.05, 1.1)
STEPS, STEP_SECONDS = 60, 0.1


def resolution(
    policy: Policy, *, candidates: int, n_max: int, spreads: Spreads = ASSUMED
) -> Mapping[float, int | None]:
    """Full runs of one of so many candidates that prove each gain with a chance of 80 %.

    None where no look up to ``n_max`` does. ``spreads`` are those that were learned.
    """
    asked = replace(policy, small_wins=0.0, min_proven_speedup=1.0)
    rest = {
        "schema": 1, "workload": "any", "full_run_steps": STEPS,
        "plan": {"spreads": write(spreads)},
        "policy": asked.to_dict(),
        "quality": {"metric": "any", "goal": "maximize", "margin": 1.0},
    }  # fmt: skip
    names = [f"candidate{index}" for index in range(candidates)]

    def proves(gain: float, runs: int) -> bool:
        arms = [_arm(BASELINE, 1.0, runs), *(_arm(name, gain, runs) for name in names)]
        return _proves(read_evidence({**rest, "arms": arms}))

    return {gain: next((n for n in looks(n_max) if proves(gain, n)), None) for gain in GAINS}


def _proves(evidence: Evidence) -> bool:
    candidate, *_ = evidence.candidates
    whole = estimate_whole_job(candidate, evidence)
    if whole is None:
        return False
    unlucky = whole.log - quantile(LIKELY, whole.df) * whole.standard_error
    seen = confirm(candidate, evidence, replace(whole, log=unlucky))
    return seen.agreement is Agreement.CONFIRMED


def _arm(name: str, speedup: float, runs: int) -> dict[str, Any]:
    step = STEP_SECONDS / speedup
    speed = [
        {"stage": "speed", "block": block, "step_seconds": [step] * STEPS}
        for block in range(SPEED_LOOKS[0])
    ]
    full = {"stage": "quality", "metric": 0.0, "wall_seconds": step * STEPS, "finished": True}
    return {"name": name, "runs": [*speed, *({**full, "order": n, "seed": n} for n in range(runs))]}
