"""The executions that faults are put into."""

from __future__ import annotations

from typing import Any

from compilegate.domain import naming
from compilegate.domain.flag_change import Override
from compilegate.usecases.flag.approval import answer_approval
from tests.faults.machine import Execution
from tests.faults.world import NAME, SPEC_KEY, Document, Truth, World

TRIAL = "abcd1234"
GIVEN = {"workload": NAME, "trial": TRIAL, "spec_key": SPEC_KEY}


def trial(workload: Document, truth: Truth | None = None, **policy: Any) -> Execution:
    """A trial; ``policy`` changes that of the workload."""
    document = {**workload, "policy": {**workload["policy"], **policy}}
    world = World(document, truth or Truth())
    return Execution(naming.EVALUATE, f"{NAME}-{TRIAL}", dict(GIVEN), world)


def approved(workload: Document) -> Execution:
    """A promotion that a person agrees to while the machine waits."""
    execution = trial(workload, approval="required")
    execution.waiting = _agree
    return execution


def _agree(execution: Execution, _token: str) -> None:
    execution.world.passes(3600)
    ana = Override("ana", "looks right")
    answer_approval(NAME, ana, approved=True, services=execution.world.services)


def canary(workload: Document) -> Execution:
    """A trial whose full runs production makes."""
    scheduled = {**workload, "schedule": {**workload["schedule"], "cron": "rate(1 day)"}}
    execution = trial(scheduled, quality_runs="canary", max_quality_runs=8)
    execution.world.register(schedule="rate(1 day)")
    for _ in range(2):
        execution.world.passes(20 * 3600)
        production(execution.world).run()
    execution.waiting = _produce
    return execution


def _produce(execution: Execution, token: str) -> None:
    """Production runs until the round has what it asked for."""
    world = execution.world
    for _ in range(12):
        if token in world.services.tokens.answers:
            return
        world.passes(20 * 3600)
        production(world).run()


def production(world: World) -> Execution:
    """A production run in this world."""
    count = sum("-train:" in execution for execution in world.ended)
    return Execution(naming.TRAIN, f"run-{count}", {"workload": NAME}, world)


def after_trial(workload: Document, truth: Truth | None = None) -> World:
    """A world whose trial has ended."""
    return trial(workload, truth).run().world
