"""The job of a production run: the registered one, with a flag's overrides laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts.model import Facts
from compilegate.domain.planning.arm_plan import CANDIDATE, ArmPlan
from compilegate.domain.planning.arms import Refusal, plan_arms
from compilegate.domain.workload.model import BASELINE, COMPILERS, PRECISIONS, Framework, Workload

TRAINS = "production training follows the flag"
# What an override may change of a job, with the type of its value.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "compiler": str, "compile_mode": str, "batch_size": int, "learning_rate": (int, float),
    "precision": str, "instance_type": str, "instance_count": int, "distribution": str,
    "entry_point": str, "hyperparameters": Mapping, "framework": Mapping, "image": str,
}  # fmt: skip
_WORDS = {"compiler": COMPILERS, "precision": PRECISIONS}
_FRAMEWORK = {one.name for one in fields(Framework)}


def baseline_arm(workload: Workload, facts: Facts, *, region: str) -> ArmPlan:
    """The registered job as the planner makes it; raises InvalidInputError where it cannot."""
    arms = plan_arms(workload, (), facts, region=region)
    if isinstance(arms, Refusal):
        raise InvalidInputError(arms.reason.message, field=f"workload {workload.name}")
    return arms[0]


def with_overrides(
    baseline: ArmPlan, name: str, overrides: Mapping[str, Any], facts: Facts
) -> ArmPlan:
    """The arm ``name``: ``overrides`` as a flag has them laid over the baseline.

    Raises InvalidInputError for an override that does not fit the job.
    """
    if name == BASELINE:
        return baseline
    check_overrides(overrides)
    arm = replace(baseline, **overrides, name=name, overrides=dict(overrides), role=CANDIDATE)
    return _on_machines(replace(arm, why=TRAINS), facts)


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raises InvalidInputError for a key or value that this release cannot lay over a job."""
    for key, value in overrides.items():
        _check(key, value)


def on_instance(arm: ArmPlan, instance_type: str, facts: Facts) -> ArmPlan:
    """The same arm on machines of another type; raises InvalidInputError for an unknown one."""
    return _on_machines(replace(arm, instance_type=instance_type), facts)


def _on_machines(arm: ArmPlan, facts: Facts) -> ArmPlan:
    """Devices and price of the cluster that the arm names."""
    price, instance = facts.price(arm.instance_type), facts.instance(arm.instance_type)
    if price is None or instance is None:
        raise _unfit("instance_type", "has no known price", arm.instance_type)
    return replace(
        arm,
        devices=max(instance.gpus, 1) * arm.instance_count,
        usd_per_hour=price.usd_per_hour * arm.instance_count,
    )


def _check(key: str, value: object) -> None:
    kind = _TYPES.get(key)
    if kind is None:
        raise _unfit(key, "is no key that this release can lay over a job", value)
    if isinstance(value, bool) or not isinstance(value, kind):
        raise _unfit(key, "is of the wrong type", value)
    if isinstance(value, int | float) and value <= 0:
        raise _unfit(key, "must be above 0", value)
    if key in _WORDS and value not in _WORDS[key]:
        raise _unfit(key, "is not a known word", value)
    if key == "framework" and isinstance(value, Mapping) and not _is_framework(value):
        raise _unfit(key, "names no framework with its version", value)


def _is_framework(value: Mapping[str, Any]) -> bool:
    return {"name", "version"} <= set(value) <= _FRAMEWORK


def _unfit(key: str, problem: str, value: object) -> InvalidInputError:
    fix = "run a new trial of the workload as it is registered now"
    return InvalidInputError(problem, field=f"flag.overrides.{key}", value=value, fix=fix)
