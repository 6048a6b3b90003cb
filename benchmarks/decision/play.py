"""Plays one workload, from the first short block to the horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.decision.article import Article
from benchmarks.decision.driver import Driver, Ending
from benchmarks.decision.screening import Screening
from benchmarks.decision.truth import BASELINE, Arm, Workload
from benchmarks.decision.world import World, best_hours, usd
from compilegate.domain.workload.model import STRICT, Policy

MODES = ("hybrid", "canary", "shadow")
ARTICLE = "article"
SHADOW_RUNS = 12
# The simulation is about the statistics, not about what a team can pay.
NO_BUDGET = 1e9


@dataclass(frozen=True)
class Outcome:
    """What became of one workload, beside the truth; money in USD.

    ``oracle_usd`` is what the best arm that policy wants on saves from the first run on,
    ``good_usd`` the best good one, ``most_usd`` the best of any speed-up; ``run_usd`` is the price
    of a baseline run.
    """

    runs_left: int
    has_good: bool
    is_provable: bool
    good_arms: int
    good_ended_worse: int  # good arms that the trial ended as worse
    verdict: str
    codes: tuple[str, ...]
    promoted: bool
    promoted_bad: bool
    promoted_clean: bool  # fast enough, no loss, and stays so
    reverted: bool
    gpu_hours: float
    bad_runs: int  # production runs that a bad arm made
    weeks: float  # of the trial
    saved_usd: float
    oracle_usd: float
    good_usd: float
    most_usd: float
    run_usd: float
    calls: int
    # Of a promotion by the judge: whole jobs' true ratio, the decision's interval of it.
    true_speedup: float | None = None
    interval: tuple[float, float] | None = None


def policy(mode: str, *, strict: bool = False) -> Policy:
    """The judge's policy in one mode: defaults but for where its runs come from."""
    usual = Policy(quality_runs=mode, max_trial_usd=NO_BUDGET)
    most = SHADOW_RUNS if mode == "shadow" else usual.max_quality_runs
    kept = replace(usual, max_quality_runs=most)
    return replace(kept, equivalence=STRICT) if strict else kept


def play(
    mode: str,
    workload: Workload,
    rng: np.random.Generator,
    screening: Screening,
    *,
    strict: bool = False,
) -> Outcome:
    """Trial, probation of what was promoted, and production until the horizon."""
    world = World(workload, rng)
    chosen: Article | Driver = (
        Article(world) if mode == ARTICLE else Driver(world, policy(mode, strict=strict), screening)
    )
    trial = chosen.trial()
    weeks = world.account.periods / workload.runs_per_week
    arm = workload.arm(trial.candidate) if trial.verdict == "promote" and trial.candidate else None
    watch = chosen.probation(arm.name) if arm else None
    bad_runs = world.account.bad_runs
    reverted = watch is not None and watch.verdict == "revert"
    kept = BASELINE if arm is None or reverted else arm.name
    world.run_out(kept, since_promotion=chosen.watched)
    good = {one.name for one in workload.candidates if workload.is_good(one)}
    bad = arm is not None and workload.is_bad(arm)
    saved = usd(workload, world.account.saved_hours - world.account.dedicated_hours)
    return Outcome(
        runs_left=workload.runs_left,
        has_good=workload.has_good,
        is_provable=workload.is_provable,
        good_arms=len(good),
        good_ended_worse=len(good & _ended_worse(trial)),
        verdict=trial.verdict,
        codes=tuple(sorted({reason.code for reason in trial.reasons})),
        promoted=arm is not None,
        promoted_bad=bad,
        promoted_clean=arm is not None and not bad and arm.loss <= 0 and not arm.regression,
        reverted=reverted,
        gpu_hours=world.account.dedicated_hours * workload.devices,
        bad_runs=bad_runs,
        weeks=weeks,
        saved_usd=saved,
        oracle_usd=usd(workload, best_hours(workload, workload.is_wanted)),
        good_usd=usd(workload, best_hours(workload, workload.is_good)),
        most_usd=usd(workload, best_hours(workload, lambda one: one.loss < workload.margin)),
        run_usd=usd(workload, workload.hours(workload.arms[0])),
        calls=trial.calls + (watch.calls if watch else 0),
        **_claim(workload, arm, trial),
    )


def _ended_worse(trial: Ending) -> set[str | None]:
    return {reason.arm for reason in trial.reasons if reason.code == "quality_worse"}


def _claim(workload: Workload, arm: Arm | None, trial: Ending) -> dict[str, object]:
    """What a promotion said of its speed-up, and the truth."""
    if arm is None or trial.speedup is None:
        return {}
    return {"true_speedup": workload.speedup(arm), "interval": trial.speedup.interval}
