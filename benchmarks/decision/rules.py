"""Plays one workload by one rule, from the first probe to the horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from benchmarks.decision.driver import Driver, Ending
from benchmarks.decision.naive import Article, Textbook
from benchmarks.decision.truth import BASELINE, Arm, Workload
from benchmarks.decision.world import World, oracle_hours, usd
from compilegate.domain.workload.model import Policy

MODES = ("shadow", "hybrid", "canary")
READINGS = {"article": "letter", "article_one_sided": "one_sided", "charitable": "charitable"}
NAIVE = (*READINGS, "textbook")
RULES = (*MODES, *NAIVE)
SHADOW_RUNS = 12
# The simulation is about the statistics, not about what a team can pay.
NO_BUDGET = 1e9


class Procedure(Protocol):
    """What every rule offers."""

    def trial(self) -> Ending:
        """Choose a candidate, or none."""

    def probation(self, candidate: str) -> Ending:
        """Keep the promoted candidate, or revert it."""


@dataclass(frozen=True)
class Outcome:
    """What one rule made of one workload, beside the truth; money in USD, time in weeks."""

    rule: str
    spread_to_margin: float
    has_good: bool
    is_provable: bool
    verdict: str
    codes: tuple[str, ...]
    promoted: bool
    promoted_bad: bool
    promoted_clean: bool  # fast enough, no loss, and stays so
    probation: str | None
    regresses: float  # margins that the promoted arm loses after promotion; 0 = it does not
    delay: int | None  # production runs from the regression to the return
    room: int | None  # production runs that were left at the promotion
    baseline_gpu_hours: float
    probe_gpu_hours: float
    gpu_hours: float
    redone_gpu_hours: float
    bad_runs: int
    weeks: float
    saved_usd: float
    saved_redone_usd: float
    oracle_usd: float
    calls: int
    # Of a promotion by the judge: whole jobs' true ratio, the decision's interval of it.
    true_speedup: float | None = None
    interval: tuple[float, float] | None = None


def policy(mode: str, max_runs: int | None = None) -> Policy:
    """The judge's policy in one mode: defaults but for where its runs come from."""
    usual = Policy(quality_runs=mode, max_trial_usd=NO_BUDGET)
    most = max_runs or (SHADOW_RUNS if mode == "shadow" else usual.max_quality_runs)
    return replace(usual, max_quality_runs=most)


def procedure(
    rule: str,
    world: World,
    *,
    max_runs: int | None = None,
    production_beside: bool = True,
) -> Procedure:
    """The rule by its name."""
    if rule in MODES:
        return Driver(world, policy(rule, max_runs), production_beside)
    if rule == "textbook":
        return Textbook(world)
    return Article(world, READINGS[rule])


def play(rule: str, workload: Workload, rng: np.random.Generator, **options: Any) -> Outcome:
    """Trial, probation of what was promoted, and production until the horizon.

    ``options`` are those of ``procedure``.
    """
    world = World(workload, rng)
    chosen = procedure(rule, world, **options)
    course = _follow(world, chosen)
    arm = workload.arm(course.promoted) if course.promoted else None
    kept = BASELINE if arm is None or course.reverted else arm.name
    world.run_out(kept, since_promotion=course.watched)
    return Outcome(
        rule=rule,
        spread_to_margin=workload.spread / workload.margin,
        has_good=workload.has_good,
        is_provable=workload.is_provable,
        verdict=course.trial.verdict,
        codes=course.trial.codes,
        calls=course.calls,
        probation=course.watch.verdict if course.watch else None,
        delay=_delay(arm, course.watched) if course.reverted else None,
        room=workload.runs_left - course.tried if arm else None,
        bad_runs=course.bad_runs,
        weeks=course.weeks,
        **_promotion(workload, arm),
        **_claim(workload, arm, course.trial),
        **_costs(world, course.probe_hours),
    )


@dataclass(frozen=True)
class _Course:
    """What a rule did with a workload until it ended."""

    trial: Ending
    watch: Ending | None
    tried: int  # production runs that went by during the trial
    watched: int  # production runs of the probation
    weeks: float  # of the trial
    bad_runs: int
    probe_hours: float

    @property
    def promoted(self) -> str | None:
        return self.trial.candidate if self.watch else None

    @property
    def reverted(self) -> bool:
        return self.watch is not None and self.watch.verdict == "revert"

    @property
    def calls(self) -> int:
        return self.trial.calls + (self.watch.calls if self.watch else 0)


def _follow(world: World, chosen: Procedure) -> _Course:
    account = world.account
    trial = chosen.trial()
    periods = account.periods
    promoted = trial.candidate if trial.verdict == "promote" else None
    watch = chosen.probation(promoted) if promoted else None
    return _Course(
        trial=trial,
        watch=watch,
        tried=periods,
        watched=account.periods - periods,
        weeks=periods / world.workload.runs_per_week,
        bad_runs=account.bad_runs,
        probe_hours=account.probe_hours,
    )


def _promotion(workload: Workload, arm: Arm | None) -> dict[str, Any]:
    bad = arm is not None and workload.is_bad(arm)
    clean = arm is not None and not bad and arm.loss <= 0 and not arm.regression
    return {
        "promoted": arm is not None,
        "promoted_bad": bad,
        "promoted_clean": clean,
        "regresses": arm.regression / workload.margin if arm else 0.0,
    }


def _claim(workload: Workload, arm: Arm | None, trial: Ending) -> dict[str, Any]:
    """What a promotion said of its speed-up, and the truth."""
    if arm is None or trial.speedup is None:
        return {}
    return {"true_speedup": workload.speedup(arm), "interval": trial.speedup.interval}


def _costs(world: World, probe_hours: float) -> dict[str, Any]:
    workload, account = world.workload, world.account
    dedicated, failed = account.dedicated_hours, account.failed_hours
    saved = usd(workload, account.saved_hours - dedicated)
    return {
        "baseline_gpu_hours": workload.hours(workload.arms[0]) * workload.devices,
        "probe_gpu_hours": probe_hours * workload.devices,
        "gpu_hours": dedicated * workload.devices,
        "redone_gpu_hours": (dedicated + failed) * workload.devices,
        "saved_usd": saved,
        "saved_redone_usd": saved - usd(workload, failed),
        "oracle_usd": usd(workload, oracle_hours(workload)),
    }


def _delay(arm: Arm | None, watched: int) -> int | None:
    """Runs that went by between the regression and the return; None without a regression."""
    if arm is None or arm.regresses_at is None or watched <= arm.regresses_at:
        return None
    return watched - arm.regresses_at
