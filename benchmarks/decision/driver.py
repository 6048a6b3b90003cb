"""Drives the shipped judge as a state machine does: make the runs of ``next``, then judge again.

Only the evidence and decision contracts are used, nothing of how the judge decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.decision.truth import BASELINE, Workload
from benchmarks.decision.world import FullRun, World
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge

Judge = Callable[[Mapping[str, Any]], Decision]

MAX_CALLS = 1000
SEGMENT_STEPS = 320
# Production's own seeds, far from those of a trial.
FIRST_PRODUCTION_SEED = 1_000_000


@dataclass(frozen=True)
class Ending:
    """How a phase ended; ``verdict`` is ``horizon`` where production ran out of runs."""

    verdict: str
    candidate: str | None
    codes: tuple[str, ...] = ()
    calls: int = 0
    speedup: Mapping[str, Any] | None = None  # as the decision has it


@dataclass
class Driver:
    """One workload's evidence document and the world that fills it.

    ``production_beside``: while a dedicated run lasts, production makes its own baseline run,
    which enters the evidence and costs nothing extra.
    """

    world: World
    policy: Mapping[str, Any]
    production_beside: bool = True
    decide: Judge = lambda document: judge(read_evidence(document))
    _order: int = 0
    document: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Start with an empty trial."""
        self.document = empty_trial(self.world.workload, self.policy)

    def trial(self) -> Ending:
        """Until the judge has chosen a candidate, or none."""
        return self._follow()

    def probation(self, candidate: str) -> Ending:
        """Until the promoted candidate is kept or reverted."""
        self.document.update(phase="probation", promoted=candidate)
        return self._follow()

    def _follow(self) -> Ending:
        for call in range(1, MAX_CALLS + 1):
            decision = self.decide(self.document)
            codes = tuple(reason.code for reason in decision.reasons)
            if decision.verdict is not Verdict.CONTINUE:
                return Ending(
                    str(decision.verdict), decision.candidate, codes, call, decision.speedup
                )
            if self.world.is_over:
                return Ending("horizon", decision.candidate, codes, call)
            self.answer(decision.next.to_dict() if decision.next else {})
        raise RuntimeError(f"the judge did not decide in {MAX_CALLS} calls")

    def answer(self, step: Mapping[str, Any]) -> None:
        """Make the runs of one ``next``."""
        if step["stage"] == "speed":
            self._speed(step)
        elif step["stage"] == "quality":
            self._shadow(step) if step["mode"] == "shadow" else self._canary(step)
        elif step["stage"] == "probation":
            self._watch(step)
        else:
            raise ValueError(f"no such stage to run: {step['stage']}")

    def _speed(self, step: Mapping[str, Any]) -> None:
        for block in range(step["block"], step["block"] + step.get("blocks", 1)):
            segments = self.world.block(list(step["arms"]), step.get("steps", SEGMENT_STEPS))
            for name, (seconds, compiling) in segments.items():
                self._append(
                    name,
                    {
                        "stage": "speed",
                        "block": block,
                        "node": f"node-{block}",
                        "compile_seconds": compiling,
                        "step_seconds": seconds,
                    },
                )

    def _shadow(self, step: Mapping[str, Any]) -> None:
        """All at once, within one period of production."""
        if self.production_beside:
            self._production(BASELINE)
        else:
            self.world.account.periods += 1
        for run in step["runs"]:
            made = self.world.shadow_run(run["arm"], run["seed"])
            self._record(run["arm"], "quality", made, mode="shadow", seed=run["seed"])

    def _canary(self, step: Mapping[str, Any]) -> None:
        """One scheduled run after another."""
        for run in step["runs"]:
            made = self.world.production_run(run["arm"], run["seed"])
            self._record(run["arm"], "quality", made, mode="canary", seed=run["seed"])

    def _production(self, name: str) -> None:
        seed = FIRST_PRODUCTION_SEED + self._order
        made = self.world.production_run(name, seed)
        self._record(name, "quality", made, mode="production", seed=seed)

    def _watch(self, step: Mapping[str, Any]) -> None:
        for run in step["runs"]:
            seed = run.get("seed", FIRST_PRODUCTION_SEED + self._order)
            since = self.watched
            made = self.world.production_run(run["arm"], seed, since_promotion=since)
            confirm = bool(run.get("confirm", False))
            self._record(run["arm"], "probation", made, confirm=confirm)

    @property
    def watched(self) -> int:
        """Production runs since the promotion."""
        return sum(
            run["stage"] == "probation" for arm in self.document["arms"] for run in arm["runs"]
        )

    def _record(self, name: str, stage: str, run: FullRun, **more: Any) -> None:
        self._append(
            name,
            {
                "stage": stage,
                "order": self._order,
                "metric": run.metric,
                "wall_seconds": run.hours * 3600,
                "finished": True,
                **more,
            },
        )
        self._order += 1

    def _append(self, name: str, run: dict[str, Any]) -> None:
        arm = next(arm for arm in self.document["arms"] if arm["name"] == name)
        arm["runs"].append({**run, "applied": True})


def empty_trial(workload: Workload, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence document before anything ran."""
    hours = workload.hours(workload.arms[0])
    return {
        "schema": 1,
        "workload": workload.name,
        "phase": "trial",
        "promoted": None,
        "policy": dict(policy),
        "quality": {
            "metric": "accuracy",
            "goal": "maximize",
            "margin": workload.margin,
            "history": list(workload.history),
            "history_wall_seconds": [hours * 3600 * f for f in workload.history_pace],
        },
        "usd_per_hour": workload.usd_per_hour,
        "runs_per_week": workload.runs_per_week,
        "runs_remaining": workload.runs_left,
        "full_run_steps": workload.run_steps(workload.arms[0]),
        "devices": workload.devices,
        "arms": [
            {"name": arm.name, "full_run_steps": workload.run_steps(arm), "runs": []}
            for arm in workload.arms
        ],
    }
