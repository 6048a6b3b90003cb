"""The arms of a trial: the baseline, each candidate, and the controls that separate effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from compilegate.domain.compilers import DEFAULT, compile_overhead, compiler_named
from compilegate.domain.facts.model import Facts
from compilegate.domain.planning.arm_plan import (
    CANDIDATE,
    CONTROL,
    LABEL,
    UNCOMPILED_LABEL,
    ArmPlan,
    changed_factors,
    scaled_learning_rate,
)
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
COMPARED = "everything is compared with it"
BASELINE_WHY = f"the job {LABEL}; {COMPARED}"
UNCOMPILED_WHY = f"the job {UNCOMPILED_LABEL}; {COMPARED}"


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
    for change in (Candidate(name=BASELINE), *candidates):
        role, reason = CANDIDATE, (why or {}).get(change.name, "")
        if change.name == BASELINE:
            role, reason = BASELINE, BASELINE_WHY
        arm = _arm(workload, change, facts, region=region, role=role, why=reason)
        if isinstance(arm, Refusal):
            return arm
        arms.append(arm)
    controls = tuple(_controls(workload, candidates, facts, region))
    explained = [
        arm if arm.why else replace(arm, why=_why(arm, [*arms, *controls])) for arm in arms
    ]
    return (*explained, *controls)


def _arm(
    workload: Workload, change: Candidate, facts: Facts, *, region: str, role: str, why: str
) -> ArmPlan | Refusal:
    base, training = workload.training, change.applied_to(workload.training)
    price, instance = facts.price(training.instance_type), facts.instance(training.instance_type)
    if price is None or instance is None:
        fix = "set it under facts.prices in the workload file, or price_overrides in cdk.json"
        text = f"there is no price of {training.instance_type}"
        return Refusal(Reason("price_unknown", text, fix=fix))
    framework, compiler = change.framework or workload.framework, change.compiler or "none"
    image = facts.image(framework, compiler=compiler, region=region, instance=instance)
    if image.uri is None:
        return Refusal(Reason("no_compiler_image", f"{change.name}: {image.why}"))
    # The model is trained by the batch of all devices together, and the learning rate follows it.
    now = facts.instance(base.instance_type)
    base_devices = base.instance_count if now is None else now.devices(base.instance_count)
    devices = instance.devices(training.instance_count)
    growth = training.batch_size * devices / (base.batch_size * base_devices)
    return ArmPlan(
        name=change.name,
        compiler=compiler,
        image=image.uri,
        instance_type=training.instance_type,
        instance_count=training.instance_count,
        devices=devices,
        usd_per_hour=price.usd_per_hour * training.instance_count,
        precision=training.precision,
        batch_size=training.batch_size,
        learning_rate=scaled_learning_rate(
            base.learning_rate, growth, change.learning_rate_scaling
        ),
        distribution=training.distribution,
        overrides=change.overrides(),
        compile_mode=change.compile_mode,
        entry_point=change.entry_point,
        framework={} if change.framework is None else plain(asdict(change.framework)),
        hyperparameters=dict(change.hyperparameters or {}),
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
        compile_seconds=_compile_seconds(compiler, workload),
    )


def _compile_seconds(compiler: str, workload: Workload) -> float | None:
    """A first compilation: the profile's, else what is assumed, at most a run's length."""
    profile, descriptor = workload.profile, compiler_named(compiler)
    profiled = descriptor is not None and descriptor.base == DEFAULT.name
    if profiled and profile and profile.compile_seconds_cold is not None:
        return profile.compile_seconds_cold
    assumed = compile_overhead(compiler, workload.model.family)
    return (
        None if assumed is None else min(assumed.cold_seconds, workload.schedule.run_hours * 3600)
    )


def _why(arm: ArmPlan, arms: Sequence[ArmPlan]) -> str:
    """Why a candidate that the workload file names is worth an arm."""
    origin = "named in the workload file: "
    if not arm.factors:
        return f"{origin}changes nothing, so its result should equal the baseline's"
    if len(arm.factors) == 1:
        return f"{origin}the {arm.factors[0]} alone, which isolates its effect"
    parts = [other.name for other in arms if other.factors and _part_of(other, arm)]
    control = f"{arm.name}{CONTROL_SUFFIX}"
    if any(other.name == control for other in arms):
        apart = f"its control {control} separates their effects"
    elif parts:
        apart = f"compare it with {' and '.join(parts)}, which changes less"
    else:
        apart = "no other candidate makes a part of these changes to separate their effects"
    return f"{origin}a {arm.label}; {apart}"


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
    """The same versions without the compiler, for each candidate that names the framework for it.

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
        f"{version} without the compiler: compared with the baseline it shows what that version"
        f"{along} costs, compared with {candidate.name} what the compiler alone gains; never "
        "promoted"
    )
