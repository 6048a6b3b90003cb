"""The job of a production run: the registered one, with a flag's overrides laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import REQUIRED
from compilegate.domain.facts import Facts
from compilegate.domain.fields import Fields
from compilegate.domain.planning.arms import CANDIDATE, ArmPlan, plan_arms
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE, Candidate, OwnImage, Training, Workload

TRAINS = "production training follows the flag"
# What an override may change of a job: read as the workload file's own keys are.
_KEYS = {
    **Candidate.keys(),
    "learning_rate": Training.keys()["learning_rate"],
    "image": OwnImage.keys()["uri"],
}
del _KEYS["name"], _KEYS["learning_rate_scaling"]


def baseline_arm(workload: Workload, facts: Facts, *, region: str) -> ArmPlan:
    """The registered job as the planner makes it; raises InvalidInputError where it cannot."""
    arms = plan_arms(workload, (), facts, region=region)
    if isinstance(arms, Reason):
        raise InvalidInputError(arms.message, field=f"workload {workload.name}")
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
    return on_machines(replace(arm, why=TRAINS), facts)


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raises InvalidInputError for a key or value that this release cannot override."""
    fields = Fields(overrides, "flag.overrides")
    for key, value in overrides.items():
        if key not in _KEYS:
            raise _unfit(key, "is not a key that this release can override", value)
        try:
            fields.value(key, replace(_KEYS[key], default=REQUIRED))
        except InvalidInputError as error:
            raise _unfit(key, error.problem, value) from error


def on_machines(arm: ArmPlan, facts: Facts) -> ArmPlan:
    """The arm with devices and price of its machines; InvalidInputError for unknown ones."""
    price, instance = facts.price(arm.instance_type), facts.instance(arm.instance_type)
    if price is None or instance is None:
        raise _unfit("instance_type", "has no known price", arm.instance_type)
    return replace(
        arm,
        devices=instance.devices(arm.instance_count),
        usd_per_hour=price.usd_per_hour * arm.instance_count,
    )


def _unfit(key: str, problem: str, value: object) -> InvalidInputError:
    fix = "run a new trial of the workload as it is registered now"
    return InvalidInputError(problem, field=f"flag.overrides.{key}", value=value, fix=fix)
