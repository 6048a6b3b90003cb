"""Which gains a policy can prove, before anything is measured.

The judge's own answer (whole_job.py) on runs of a true speed-up that differ by nothing, so that
only what is assumed of their spread keeps the proof from them. Runs that differ take more: a gain
that cannot be proven here cannot be proven anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compilegate.domain.judging.design import LIKELY, looks
from compilegate.domain.judging.evidence import TRIAL, Arm, Evidence, FullRun, SpeedRun, TrialPlan
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.judging.student import quantile
from compilegate.domain.judging.whole_job import Agreement, confirm, estimate_whole_job
from compilegate.domain.workload.model import BASELINE, Policy
from compilegate.domain.workload.quality import Quality

# The gains of which it is said, and the bar that they are proven above.
GAINS = (1.005, 1.02, 1.05, 1.1)
ANY_GAIN = 1.0
STEP_SECONDS, RUN_SECONDS = 0.1, 3600.0


def resolution(
    policy: Policy, *, candidates: int, n_max: int, plan: TrialPlan | None = None
) -> Mapping[float, int | None]:
    """Full runs of one of so many candidates that prove each gain with a chance of 80 %.

    None where no look up to ``n_max`` does. ``plan`` has what is known of spreads.
    """
    bars = replace(policy, min_mean_speedup=ANY_GAIN, min_proven_speedup=ANY_GAIN)
    return {
        gain: next(
            (
                n
                for n in looks(n_max)
                if _proves(_evidence(gain, n, bars, candidates, plan or TrialPlan()))
            ),
            None,
        )
        for gain in GAINS
    }


def _proves(evidence: Evidence) -> bool:
    candidate = evidence.candidates[0]
    whole = estimate_whole_job(candidate, evidence)
    if whole is None:
        return False
    unlucky = whole.log - quantile(LIKELY, whole.df) * whole.standard_error
    seen = confirm(candidate, evidence, replace(whole, log=unlucky))
    return seen.agreement is Agreement.CONFIRMED


def _evidence(gain: float, runs: int, policy: Policy, candidates: int, plan: TrialPlan) -> Evidence:
    """A trial of so many full runs of each arm; the candidates beside the first share the error."""
    arms = [_arm(BASELINE, 1.0, runs, plan), _arm("candidate", gain, runs, plan)]
    arms += [_arm(f"other{index}", gain, 0, plan) for index in range(1, candidates)]
    return Evidence(
        workload="", phase=TRIAL, promoted=None, policy=policy,
        quality=Quality("metric", "maximize", 1.0), history_wall_seconds=(), runs_per_week=None,
        runs_remaining=None, arms=tuple(arms), plan=plan,
    )  # fmt: skip


def _arm(name: str, speedup: float, runs: int, plan: TrialPlan) -> Arm:
    seconds = (STEP_SECONDS / speedup,) * plan.speed_steps
    speed = tuple(
        SpeedRun(
            finished=True, applied=True, record={}, block=block, node=None, compile_seconds=0.0,
            step_seconds=seconds, samples_per_step=None, full_run_steps=None,
        )
        for block in range(SPEED_LOOKS[0])
    )  # fmt: skip
    full = tuple(
        FullRun(
            finished=True, applied=True, record={}, stage="quality", order=order, mode="shadow",
            seed=order, metric=0.0, wall_seconds=RUN_SECONDS / speedup, confirm=False,
            launched_by=None,
        )
        for order in range(runs)
    )  # fmt: skip
    return Arm(name, int(RUN_SECONDS / STEP_SECONDS), None, 1, speed, full)
