"""What compiling cost a run in this workload's earlier trials."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.eligibility import MeasuredOverhead
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.trials import TrialDecided
from compilegate.ports import ObjectStore
from compilegate.usecases.trial.documents import Trial
from compilegate.usecases.trial.recorded import load_decision, load_plan

# Older ones would be of another model before they would be of use.
TRIALS_READ = 3


def past_overheads(
    workload: str, past: WorkloadHistory, store: ObjectStore
) -> tuple[MeasuredOverhead, ...]:
    """Compile seconds that the last decided trials of a workload measured, oldest first."""
    decided = sorted(past.decided, key=lambda one: one.key)
    return tuple(
        overhead
        for decision in decided[-TRIALS_READ:]
        for overhead in _measured(store, workload, decision)
    )


def _measured(
    store: ObjectStore, workload: str, decided: TrialDecided
) -> Iterator[MeasuredOverhead]:
    """One trial's arms; nothing where it ended before a plan, or its documents are gone."""
    trial = Trial(workload, decided.trial, spec_key="")
    try:
        figures = load_decision(store, decided.decision_key).arms
        plan = load_plan(store, trial)
    except NotFoundError:
        return
    arms = {arm.name: arm for arm in plan.arms}
    for measured in figures:
        arm = arms.get(str(measured["name"]))
        # A compiler that counted no time at all was not measured.
        warm, cold = (measured.get(f"compile_seconds_{key}") or None for key in ("warm", "cold"))
        if arm is None or arm.compiler == "none" or (warm, cold) == (None, None):
            continue
        yield MeasuredOverhead(
            trial=trial.trial,
            compiler=arm.compiler,
            compile_mode=arm.compile_mode,
            image=arm.image,
            warm_seconds=warm,
            cold_seconds=cold,
        )
