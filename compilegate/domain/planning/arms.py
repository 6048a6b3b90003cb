"""The arms of a trial: the baseline, each candidate, and the controls that tell effects apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from compilegate.domain.compilers import compiler_named
from compilegate.domain.compilers.torch_compile import TORCH_COMPILE
from compilegate.domain.facts.model import Facts, Instance
from compilegate.domain.planning.arm_plan import (
    CANDIDATE,
    CONTROL,
    ArmPlan,
    scaled_learning_rate,
)
from compilegate.domain.planning.factors import changed_factors
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE, CONTROL_SUFFIX, Candidate, Workload, plain

# The learning rate follows the batch.
FOLLOWS = "learning_rate_scaling"
# What a control takes over from its candidate beside the framework.
ALONG = {
    "batch size": "batch_size",
    "precision": "precision",
    "instance type": "instance_type",
    "instance count": "instance_count",
}
BASELINE_WHY = "the job as it runs today; everything is compared with it"


@dataclass(frozen=True)
class Refusal:
    """Why no plan was made."""

    reason: Reason


def plan_arms(
    workload: Workload,
    candidates: Sequence[Candidate],
    facts: Facts,
    *,
    region: str,
    why: Mapping[str, str] | None = None,
) -> tuple[ArmPlan, ...] | Refusal:
    """Baseline, candidates and controls, in this order; ``why`` each candidate is there."""
    arms: list[ArmPlan] = []
    for change in (Candidate(BASELINE), *candidates):
        role, told = CANDIDATE, (why or {}).get(change.name, "")
        if change.name == BASELINE:
            role, told = BASELINE, BASELINE_WHY
        arm = _arm(workload, change, facts, region=region, role=role, why=told)
        if isinstance(arm, Refusal):
            return arm
        arms.append(arm)
    controls = tuple(_controls(workload, candidates, facts, region))
    named = [arm if arm.why else replace(arm, why=_why(arm, [*arms, *controls])) for arm in arms]
    return (*named, *controls)


def _arm(
    workload: Workload,
    change: Candidate,
    facts: Facts,
    *,
    region: str,
    role: str,
    why: str,
) -> ArmPlan | Refusal:
    instance_type = change.instance_type or workload.training.instance_type
    price, instance = facts.price(instance_type), facts.instance(instance_type)
    if price is None or instance is None:
        fix = "set it under facts.prices in the workload file, or price_overrides in cdk.json"
        return Refusal(Reason("price_unknown", f"no price is known for {instance_type}", fix=fix))
    framework, compiler = change.framework or workload.framework, change.compiler or "none"
    image = facts.image(framework, compiler=compiler, region=region, instance=instance)
    if image.uri is None:
        return Refusal(Reason("no_compiler_image", f"{change.name}: {image.why}"))
    arm = _job(workload, change, image.uri, instance)
    # The model is trained by the batch of all devices together, and the learning rate follows it.
    growth = arm.global_batch / _global_batch(workload, facts)
    return replace(
        arm,
        usd_per_hour=price.usd_per_hour * arm.instance_count,
        learning_rate=scaled_learning_rate(arm.learning_rate, growth, change.learning_rate_scaling),
        role=role,
        why=why,
        factors=changed_factors(
            change,
            workload,
            same_global_batch=growth == 1,
            same_framework=facts.same_framework(
                framework, workload.framework, region=region, instance=instance
            ),
        ),
        compile_seconds=_compile_seconds(compiler, workload, facts),
    )


def _job(workload: Workload, change: Candidate, image: str, instance: Instance) -> ArmPlan:
    """The job with the candidate's changes, its learning rate and price still to be reckoned."""
    base = workload.training
    count = change.instance_count or base.instance_count
    return ArmPlan(
        name=change.name,
        compiler=change.compiler or "none",
        image=image,
        instance_type=instance.instance_type,
        instance_count=count,
        devices=_devices(instance, count),
        usd_per_hour=0.0,
        precision=change.precision or base.precision,
        batch_size=change.batch_size or base.batch_size,
        learning_rate=base.learning_rate,
        distribution=change.distribution or base.distribution,
        overrides=change.overrides(),
        compile_mode=change.compile_mode,
        entry_point=change.entry_point,
        framework={} if change.framework is None else plain(asdict(change.framework)),
        hyperparameters=dict(change.hyperparameters or {}),
    )


def _devices(instance: Instance | None, count: int) -> int:
    return count if instance is None else max(instance.gpus, 1) * count


def _global_batch(workload: Workload, facts: Facts) -> int:
    """Samples of one of the baseline's optimiser steps."""
    base = workload.training
    return base.batch_size * _devices(facts.instance(base.instance_type), base.instance_count)


def _compile_seconds(compiler: str, workload: Workload, facts: Facts) -> float | None:
    """A first compilation: the profile's, else what is assumed, at most a run's length."""
    profile = workload.profile
    descriptor = compiler_named(compiler)
    profiled = descriptor is not None and descriptor.assumptions == TORCH_COMPILE
    if profiled and profile and profile.compile_seconds_cold is not None:
        return profile.compile_seconds_cold
    assumed = facts.compile_overhead(compiler, workload.model.family)
    if assumed is None:
        return None
    return min(assumed.cold_seconds, workload.schedule.run_hours * 3600)


def _why(arm: ArmPlan, arms: Sequence[ArmPlan]) -> str:
    """Why a candidate that the workload file names is worth an arm."""
    named = "named in the workload file: "
    if not arm.factors:
        return f"{named}changes nothing, so it should come out as the baseline does"
    if len(arm.factors) == 1:
        return f"{named}the {arm.factors[0]} alone, so that what it brings is its own doing"
    parts = [other.name for other in arms if other.factors and _part_of(other, arm)]
    control = f"{arm.name}{CONTROL_SUFFIX}"
    if any(other.name == control for other in arms):
        apart = f"its control {control} tells them apart"
    elif parts:
        apart = f"read beside {' and '.join(parts)}, which changes less"
    else:
        apart = "no other candidate makes a part of these changes, so nothing tells them apart"
    return f"{named}a {arm.label}; {apart}"


def _part_of(other: ArmPlan, arm: ArmPlan) -> bool:
    """Whether the other arm makes some of this arm's changes, and no further ones."""
    mine = {key: value for key, value in arm.overrides.items() if key != FOLLOWS}
    return other is not arm and all(
        key == FOLLOWS or (key in mine and mine[key] == value)
        for key, value in other.overrides.items()
    )


def _controls(
    workload: Workload, candidates: Sequence[Candidate], facts: Facts, region: str
) -> Iterator[ArmPlan]:
    """The same-version twin of each candidate that brings the managed compiler's own framework.

    There is none where no image of those versions exists without the compiler.
    """
    names = {candidate.name for candidate in candidates}
    for candidate in candidates:
        twin = _twin(candidate, workload)
        if twin is None or twin.name in names:
            continue
        arm = _arm(workload, twin, facts, region=region, role=CONTROL, why=_control_why(candidate))
        if isinstance(arm, ArmPlan) and "framework" in arm.factors:
            yield arm


def _twin(candidate: Candidate, workload: Workload) -> Candidate | None:
    """The candidate without its compiler and what only that compiler needs; None: none needed."""
    framework, compiler = candidate.framework, compiler_named(candidate.compiler)
    if compiler is None or not compiler.own_image or framework is None:
        return None
    if framework.kind != workload.framework.kind:
        return None  # the workload's script could not run on it
    launcher = candidate.distribution
    if compiler.launching and launcher == compiler.launching.distribution:
        launcher = "none" if workload.training.distribution == "none" else "torch_distributed"
    own_script = candidate.entry_point is None
    return Candidate(
        name=f"{candidate.name}{CONTROL_SUFFIX}",
        framework=framework,
        distribution=launcher,
        batch_size=candidate.batch_size,
        learning_rate_scaling=candidate.learning_rate_scaling,
        precision=candidate.precision,
        instance_type=candidate.instance_type,
        instance_count=candidate.instance_count,
        hyperparameters=candidate.hyperparameters if own_script else None,
    )


def _control_why(candidate: Candidate) -> str:
    framework = candidate.framework
    version = f"{framework.name} {framework.version}" if framework else "the older framework"
    also = [name for name, key in ALONG.items() if getattr(candidate, key) is not None]
    along = f" with {' and '.join(also)} of the candidate" if also else ""
    return (
        f"{version} without the compiler: beside the baseline it shows what going to that version"
        f"{along} costs, beside {candidate.name} what the compiler alone brings; never promoted"
    )
