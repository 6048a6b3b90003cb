"""Drives the shipped judge as a state machine does: make the runs of ``next``, then judge again.

Only typed evidence and decisions are used, nothing of how the judge decides. In production one
run is made at a time, as TRAIN does, and every so many of them are the baseline's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.decision import truth
from benchmarks.decision.screening import COMPILER, Screening
from benchmarks.decision.truth import BASELINE, Workload
from benchmarks.decision.world import FullRun, World
from compilegate.domain.decision import (
    Decision,
    NextStep,
    ProbationStep,
    QualityStep,
    SpeedStep,
    Speedup,
    Verdict,
)
from compilegate.domain.judging import evidence
from compilegate.domain.judging.evidence import PROBATION, TRIAL, Arm, Evidence, SpeedRun, TrialPlan
from compilegate.domain.judging.judge import judge
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Policy
from compilegate.domain.workload.quality import Quality

Judge = Callable[[Evidence], Decision]

MAX_CALLS = 1000
# Production's own seeds, far from those of a trial.
FIRST_PRODUCTION_SEED = 1_000_000
# Of a probation's runs that nothing was asked of, every so many is the baseline's: as begin.py.
REFRESH_EVERY = 6


@dataclass(frozen=True)
class Ending:
    """How a phase ended; ``verdict`` is ``horizon`` where production ran out of runs."""

    verdict: str
    candidate: str | None
    reasons: tuple[Reason, ...] = ()
    calls: int = 0
    speedup: Speedup | None = None


@dataclass
class Driver:
    """One workload's evidence and the world that fills it.

    While a dedicated run lasts, production makes its own baseline run, which enters the evidence
    and costs nothing extra.
    """

    world: World
    policy: Policy
    screening: Screening = field(default_factory=Screening)
    decide: Judge = judge
    watched: int = 0  # production runs since the promotion
    evidence: Evidence = field(init=False)
    caught: Mapping[str, bool] = field(init=False)  # by the check, of the arms that have one
    _order: int = 0
    _since_baseline: int = 0

    def __post_init__(self) -> None:
        """Start with an empty trial."""
        workload = self.world.workload
        self.caught = {
            arm.name: self.screening.catches(arm, self.world.rng)
            for arm in workload.candidates
            if arm.only_compiler
        }
        self.evidence = replace(
            empty_trial(workload, self.policy), equivalence=self.screening.table
        )

    def trial(self) -> Ending:
        """Until the judge has chosen a candidate, or none."""
        return self._follow()

    def probation(self, candidate: str) -> Ending:
        """Until the promoted candidate is kept or reverted."""
        self.evidence = replace(self.evidence, phase=PROBATION, promoted=candidate)
        return self._follow()

    def _follow(self) -> Ending:
        for call in range(1, MAX_CALLS + 1):
            decision = self.decide(self.evidence)
            ending = Ending(
                str(decision.verdict), decision.candidate, decision.reasons, call, decision.speedup
            )
            if decision.verdict is not Verdict.CONTINUE:
                return ending
            if self.world.is_over:
                return replace(ending, verdict="horizon")
            self.answer(decision.next)
        raise RuntimeError(f"the judge did not decide in {MAX_CALLS} calls")

    def answer(self, step: NextStep | None) -> None:
        """Make the runs of one ``next``."""
        if isinstance(step, SpeedStep):
            self._speed(step)
        elif isinstance(step, QualityStep):
            self._canary(step) if step.is_canary else self._shadow(step)
        elif isinstance(step, ProbationStep):
            self._watch(step)
        else:
            raise TypeError(f"no such step to run: {step}")

    def _speed(self, step: SpeedStep) -> None:
        for block in range(step.block, step.block + step.blocks):
            segments = self.world.block(list(step.arms), step.steps)
            for name, (seconds, compiling) in segments.items():
                first = self._check(name, "first") if block == 0 else {}
                self._add(name, speed=_segment(block, tuple(seconds), compiling, first))

    def _shadow(self, step: QualityStep) -> None:
        """All at once, within one period of production."""
        self._production(BASELINE)
        for run in step.runs:
            made = self.world.shadow_run(run.arm, run.seed)
            self._record(run.arm, made, mode="shadow", seed=run.seed)

    def _canary(self, step: QualityStep) -> None:
        """One scheduled run after another."""
        for run in step.runs:
            made = self.world.production_run(run.arm, run.seed)
            self._record(run.arm, made, mode="canary", seed=run.seed)

    def _production(self, name: str) -> None:
        seed = FIRST_PRODUCTION_SEED + self._order
        made = self.world.production_run(name, seed)
        self._record(name, made, mode="production", seed=seed)

    def _watch(self, step: ProbationStep) -> None:
        """The next run alone: the judge is asked again after it."""
        name = step.arms[0]
        if not step.confirm and self._since_baseline >= REFRESH_EVERY - 1:
            name = BASELINE
        self._since_baseline = 0 if name == BASELINE else self._since_baseline + 1
        seed = FIRST_PRODUCTION_SEED + self._order
        made = self.world.production_run(name, seed, since_promotion=self.watched)
        self.watched += 1
        self._record(name, made, mode="production", confirm=step.confirm)

    def _record(
        self, name: str, made: FullRun, *, mode: str, seed: int | None = None, confirm: bool = False
    ) -> None:
        stage = "probation" if self.evidence.phase == PROBATION else "quality"
        record = {
            "stage": stage,
            "order": self._order,
            "mode": mode,
            "seed": seed,
            "metric": made.metric,
            "wall_seconds": made.hours * 3600,
            "finished": True,
            "applied": True,
            "confirm": confirm,
        }
        run = evidence.FullRun(
            **record, launched_by=None, record={**record, **self._steps(name, made)}
        )
        self._order += 1
        self._add(name, **{stage: run})

    def _steps(self, name: str, made: FullRun) -> Mapping[str, Any]:
        """What a job records of its steps and of its check at the last weights."""
        steps = self.world.workload.run_steps(self.world.workload.arm(name))
        return {"steps": steps, "seconds": made.hours * 3600, **self._check(name, "last")}

    def _check(self, name: str, weights: str) -> Mapping[str, Any]:
        """The arm's equivalence check, empty where it has none."""
        caught = self.caught.get(name)
        if caught is None:
            return {}
        return {"equivalence": self.screening.document(weights, caught=caught)}

    def _add(self, name: str, **runs: SpeedRun | evidence.FullRun) -> None:
        """Append one run to the arm's runs of that stage."""
        arms = tuple(
            replace(arm, **{stage: (*getattr(arm, stage), run) for stage, run in runs.items()})
            if arm.name == name
            else arm
            for arm in self.evidence.arms
        )
        self.evidence = replace(self.evidence, arms=arms)


def _segment(
    block: int, seconds: tuple[float, ...], compiling: float, check: Mapping[str, Any]
) -> SpeedRun:
    record = {
        "stage": "speed",
        "block": block,
        "node": f"node-{block}",
        "compile_seconds": compiling,
        "step_seconds": seconds,
        "applied": True,
        **check,
    }
    return SpeedRun(
        finished=True,
        applied=True,
        record=record,
        block=block,
        node=f"node-{block}",
        compile_seconds=compiling,
        step_seconds=seconds,
        samples_per_step=None,
        full_run_steps=None,
    )


def empty_trial(workload: Workload, policy: Policy) -> Evidence:
    """The evidence before anything ran."""
    hours = workload.hours(workload.arms[0])
    return Evidence(
        workload=workload.name,
        phase=TRIAL,
        promoted=None,
        policy=policy,
        quality=Quality(
            metric="accuracy",
            goal="maximize",
            margin=workload.margin,
            history=workload.history,
        ),
        history_wall_seconds=tuple(hours * 3600 * pace for pace in workload.history_pace),
        runs_per_week=float(workload.runs_per_week),
        runs_remaining=float(workload.runs_left),
        arms=tuple(
            Arm(
                name=arm.name,
                full_run_steps=workload.run_steps(arm),
                usd_per_hour=workload.usd_per_hour,
                devices=workload.devices,
                speed=(),
                quality=(),
                overrides=_overrides(arm),
            )
            for arm in workload.arms
        ),
        plan=TrialPlan(),
    )


def _overrides(arm: truth.Arm) -> Mapping[str, Any]:
    """What the arm changes of the baseline's settings."""
    if arm.name == BASELINE:
        return {}
    return COMPILER if arm.only_compiler else {**COMPILER, "batch_size": 96}
