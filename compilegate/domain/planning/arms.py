"""The arms of a trial: the baseline, each candidate, and the controls that separate effects."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.compilers import DEFAULT, compiler_named
from compilegate.domain.facts import Facts
from compilegate.domain.flag import OVERRIDE_KEYS, Flag
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import (
    BASELINE,
    CONTROL_SUFFIX,
    Candidate,
    Framework,
    Training,
    Workload,
    controlled_by,
    plain,
)

# One arm of a trial as its jobs will run, and the factors that it changes.

CANDIDATE = "candidate"
CONTROL = "control"
ON = "on"
LABEL = "as it runs today"
UNCOMPILED_LABEL = f"{LABEL}, its own compiling off"
# What an arm may differ in, and the settings of the training that make up a factor alone.
# learning_rate_scaling follows the batch, and compile_mode is part of the compiler's treatment.
FACTORS = {
    "compiler": (),
    "batch size": (),
    "precision": ("precision",),
    "instances": ("instance_type", "instance_count"),
    "distribution": ("distribution",),
    "framework": (),
    "script": ("entry_point",),
    "hyperparameters": ("hyperparameters",),
}


@dataclass(frozen=True)
class Cluster:
    """The machines of one job."""

    instance_type: str
    instances: int


@dataclass(frozen=True)
class ArmPlan:
    """One arm's job; ``usd_per_hour`` is the whole cluster's, ``batch_size`` is per device.

    ``overrides`` are the arm's own changes, empty for the baseline. ``entry_point`` None and empty
    ``framework`` are the workload's; ``hyperparameters`` are laid over the workload's. ``role`` is
    baseline, candidate, on (what is on, under candidates on top of it), or control: measured to
    separate effects, never promoted. ``why`` says what the arm is there for, ``factors`` what it
    changes. ``compile_seconds`` are those of a first compilation, profiled or assumed; None without
    either.
    """

    name: str
    compiler: str
    image: str
    instance_type: str
    instance_count: int
    devices: int
    usd_per_hour: float
    precision: str
    batch_size: int
    learning_rate: float
    distribution: str
    overrides: Mapping[str, Any]
    compile_mode: str | None = None
    entry_point: str | None = None
    framework: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    role: str = CANDIDATE
    why: str = ""
    factors: tuple[str, ...] = ()
    compile_seconds: float | None = None

    @property
    def global_batch(self) -> int:
        """Samples of one optimizer step over all devices."""
        return self.batch_size * self.devices

    @property
    def cluster(self) -> Cluster:
        """The machines that its jobs take."""
        return Cluster(self.instance_type, self.instance_count)

    @property
    def label(self) -> str:
        """What the arm changes: ``one factor: compiler``, ``bundle of compiler and batch size``."""
        if not self.factors:
            return LABEL if self.name == BASELINE else "changes nothing"
        *others, last = self.factors
        return f"bundle of {', '.join(others)} and {last}" if others else f"one factor: {last}"

    @property
    def shares_nodes(self) -> tuple[str, str, int, str, str | None, bool]:
        """Arms for which this is equal can run back to back on one node, in one job.

        The managed compiler is switched on for a whole job, even where its image is the same.
        """
        return (
            self.image, self.instance_type, self.instance_count, self.distribution,
            self.entry_point, compiler_named(self.compiler).own_image,
        )  # fmt: skip


def promoted(
    arm: ArmPlan, baseline: ArmPlan, *, decision_id: str, since: str | None = None
) -> Flag:
    """The flag of a candidate that was proven against its baseline."""
    keys = [key for key in OVERRIDE_KEYS if key in arm.overrides]
    # It follows the batch of all devices together, however that changes.
    if "batch_size" in keys or arm.learning_rate != baseline.learning_rate:
        keys.append("learning_rate")
    if arm.image != baseline.image:
        keys.append("image")
    return Flag(
        enabled=True,
        state="probation",
        candidate=arm.name,
        overrides={key: getattr(arm, key) for key in keys},
        decision_id=decision_id,
        since=since,
    )


def scaled_learning_rate(rate: float, batch_ratio: float, scaling: str | None) -> float:
    """Learning rate for a larger batch: linear (Goyal et al. 2017) or square root."""
    if scaling == "linear":
        return rate * batch_ratio
    if scaling == "sqrt":
        return rate * math.sqrt(batch_ratio)
    return rate


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


def plan_arms(
    workload: Workload,
    candidates: Sequence[Candidate],
    facts: Facts,
    *,
    region: str,
    why: Mapping[str, str] | None = None,
    on: str = "",
) -> tuple[ArmPlan, ...] | Reason:
    """Baseline, candidates and controls, in this order; ``why`` each candidate is there.

    ``on`` names the candidate that is on.
    """
    arms: list[ArmPlan] = []
    for change in (Candidate(name=BASELINE), *candidates):
        role, reason = ON if change.name == on else CANDIDATE, (why or {}).get(change.name, "")
        if change.name == BASELINE:
            role, reason = BASELINE, BASELINE_WHY
        arm = _arm(workload, change, facts, region=region, role=role, why=reason)
        if isinstance(arm, Reason):
            return arm
        arms.append(arm)
    controls = tuple(_controls(workload, candidates, facts, region))
    explained = [
        arm if arm.why else replace(arm, why=_why(arm, [*arms, *controls])) for arm in arms
    ]
    return (*explained, *controls)


def _arm(
    workload: Workload, change: Candidate, facts: Facts, *, region: str, role: str, why: str
) -> ArmPlan | Reason:
    base, training = workload.training, change.applied_to(workload.training)
    price, instance = facts.price(training.instance_type), facts.instance(training.instance_type)
    if price is None or instance is None:
        fix = "set it under facts.prices in the workload file, or price_overrides in cdk.json"
        text = f"there is no price of {training.instance_type}"
        return Reason("price_unknown", text, fix=fix)
    framework, compiler = change.framework or workload.framework, change.compiler or "none"
    image = facts.image(framework, compiler=compiler, region=region, instance=instance)
    if not image.uri:
        return Reason("no_compiler_image", f"{change.name}: {image.why}")
    # The model is trained by the batch of all devices together, and the learning rate follows it:
    # other machines change it too, unless the batch of a device makes up for that.
    now = facts.instance(base.instance_type)
    base_devices = now.devices(base.instance_count) if now else base.instance_count
    devices = instance.devices(training.instance_count)
    growth = training.batch_size * devices / (base.batch_size * base_devices)
    same_framework = facts.same_framework(
        framework, workload.framework, region=region, instance=instance
    )
    differs = {
        "compiler": compiler != "none",
        "batch size": growth != 1,
        "framework": not same_framework,
        **_changes(change, base, training),
    }
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
        framework=plain(asdict(change.framework)) if change.framework else {},
        hyperparameters=dict(change.hyperparameters),
        role=role,
        why=why,
        factors=tuple(factor for factor in FACTORS if differs[factor]),
        compile_seconds=_compile_seconds(compiler, workload),
    )


def _changes(change: Candidate, base: Training, own: Training) -> dict[str, bool]:
    """Whether each factor differs that settings of the training alone make up."""
    differs = {
        factor: any(getattr(own, key) != getattr(base, key) for key in keys)
        for factor, keys in FACTORS.items()
        if keys
    }
    launching = compiler_named(change.compiler).launching
    if launching and own.distribution == launching.distribution:
        differs["distribution"] = False  # in that compiler's images only: not to be varied apart
    return differs


def _compile_seconds(compiler: str, workload: Workload) -> float | None:
    """A first compilation: the profile's, else what is assumed, at most a run's length."""
    profiled, descriptor = workload.profile.compile_seconds_cold, compiler_named(compiler)
    if descriptor.base == DEFAULT.name and profiled is not None:
        return profiled
    assumed, most = descriptor.overhead(workload.model.family), workload.schedule.run_hours * 3600
    return min(assumed.cold_seconds, most) if assumed else None


def _why(arm: ArmPlan, arms: Sequence[ArmPlan]) -> str:
    """Why a candidate that the workload file names is worth an arm."""
    origin = "named in the workload file: "
    if not arm.factors:
        return f"{origin}changes nothing, so its result should equal the baseline's"
    factor, *others = arm.factors
    if not others:
        return f"{origin}the {factor} alone, which isolates its effect"
    mine = arm.overrides.items()
    parts = [  # which make some of this arm's changes, and no further ones
        other.name
        for other in arms
        if other.factors
        and other is not arm
        and all(change in mine for change in other.overrides.items() if change[0] != FOLLOWS)
    ]
    control = f"{arm.name}{CONTROL_SUFFIX}"
    if any(other.name == control for other in arms):
        apart = f"its control {control} separates their effects"
    elif parts:
        apart = f"compare it with {' and '.join(parts)}, which changes less"
    else:
        apart = "no other candidate makes a part of these changes to separate their effects"
    return f"{origin}a {arm.label}; {apart}"


def _controls(
    workload: Workload, candidates: Sequence[Candidate], facts: Facts, region: str
) -> Iterator[ArmPlan]:
    """The same versions without the compiler, for each candidate that names the framework for it.

    There is none where no image of those versions exists without the compiler.
    """
    names = {candidate.name for candidate in candidates}
    for candidate in candidates:
        framework = candidate.framework
        own_image = compiler_named(candidate.compiler).own_image
        # Of another kind of framework the workload's script could not run.
        if not own_image or not framework or framework.kind != workload.framework.kind:
            continue
        twin = _twin(candidate, workload)
        if twin.name in names:
            continue
        why = _control_why(candidate, framework)
        arm = _arm(workload, twin, facts, region=region, role=CONTROL, why=why)
        if isinstance(arm, ArmPlan) and "framework" in arm.factors:
            yield arm


def _twin(candidate: Candidate, workload: Workload) -> Candidate:
    """The candidate without its compiler and what only that compiler needs."""
    compiler = compiler_named(candidate.compiler)
    launcher = candidate.distribution
    if compiler.launching and launcher == compiler.launching.distribution:
        launcher = "none" if workload.training.distribution == "none" else "torch_distributed"
    return replace(
        candidate,
        name=f"{candidate.name}{CONTROL_SUFFIX}",
        compiler=None,
        compile_mode=None,
        entry_point=None,
        distribution=launcher,
        hyperparameters={} if candidate.entry_point else candidate.hyperparameters,
    )


def _control_why(candidate: Candidate, framework: Framework) -> str:
    also = [name for name, key in ALONG.items() if getattr(candidate, key)]
    along = f" with {' and '.join(also)} of the candidate" if also else ""
    return (
        f"{framework.name} {framework.version} without the compiler: compared with the baseline it "
        f"shows what that version{along} costs, compared with {candidate.name} what the compiler "
        "alone gains; never promoted"
    )


# Which jobs measure a step's speed blocks.
#
# Arms that can share nodes run back to back in one job, which carries all blocks of the step.
# Where one of them needs nodes of its own (another image, instance, launcher or entry point),
# every block is one job per group of arms that share nodes, all at the same time: each block
# then draws fresh nodes, and the block stays the unit of replication.

# A control separates two effects and decides nothing: as many blocks as the first look takes.
CONTROL_BLOCKS = 3


@dataclass(frozen=True)
class SpeedJob:
    """One job of a step; ``apart`` where it measures one group's part of one block."""

    arms: tuple[ArmPlan, ...]
    group: int
    first_block: int
    blocks: int
    apart: bool

    def run(self, round_number: int) -> str:
        """Its run id."""
        block = self.first_block if self.apart else None
        return naming.speed_run(round_number, self.group, block)

    @property
    def usd_per_hour(self) -> float:
        """Price of its cluster, which all of its arms share."""
        return self.arms[0].usd_per_hour

    @property
    def decides(self) -> bool:
        """Whether it measures what is judged; a control's job does not."""
        return self.arms[0].role != CONTROL


def node_groups(arms: Sequence[ArmPlan]) -> list[tuple[ArmPlan, ...]]:
    """The plan's arms by the nodes that they can share, the baseline's group first.

    Controls have jobs of their own, so that a broken control does not fail a candidate.
    """
    groups: dict[object, list[ArmPlan]] = {}
    for arm in arms:
        groups.setdefault((arm.shares_nodes, arm.role == CONTROL), []).append(arm)
    return [tuple(group) for group in groups.values()]


def speed_jobs(
    arms: Sequence[ArmPlan],
    measured: Collection[str],
    *,
    first_block: int,
    blocks: int,
    control_blocks: Mapping[str, int],
) -> list[SpeedJob]:
    """The jobs of one step that measures the arms named ``measured``, and their controls.

    ``control_blocks`` counts the blocks that each control has had.
    """
    groups = _groups(arms, measured, control_blocks)
    if len(groups) == 1:
        return [
            SpeedJob(group, index, first_block, blocks, False) for index, group in groups.items()
        ]
    return [
        SpeedJob(group, index, first_block + turn, 1, True)
        for turn in range(blocks)
        for index, group in _groups(arms, measured, control_blocks, turn).items()
    ]


def arm_of(run: naming.RunId, arms: Sequence[ArmPlan]) -> ArmPlan:
    """The run's arm, which has the job's cluster and price; ``arms`` are the plan's.

    Of a speed job the first of its group, which shares its nodes.
    """
    return node_groups(arms)[run.group][0] if run.arm_index is None else arms[run.arm_index]


def measured_by(run: naming.RunId, arms: Sequence[ArmPlan]) -> tuple[str, ...] | None:
    """Names of the arms that a speed job may measure, None: any; ``arms`` are the plan's."""
    if run.block is None:
        return None
    return tuple(arm.name for arm in node_groups(arms)[run.group])


def controls_of(run: naming.RunId, arms: Sequence[ArmPlan]) -> tuple[str, ...]:
    """Names of the controls whose job this is, none for a job that decides; ``arms`` as above."""
    own = measured_by(run, arms) or ()
    return tuple(arm.name for arm in arms if arm.role == CONTROL and arm.name in own)


def _groups(
    arms: Sequence[ArmPlan],
    measured: Collection[str],
    control_blocks: Mapping[str, int],
    turn: int = 0,
) -> dict[int, tuple[ArmPlan, ...]]:
    """The arms of the step's block number ``turn``, by the number of their group."""

    def takes_part(arm: ArmPlan) -> bool:
        if arm.role != CONTROL:
            return arm.name in measured
        done = control_blocks.get(arm.name, 0) + turn
        return controlled_by(arm.name) in measured and done < CONTROL_BLOCKS

    groups = {
        index: tuple(filter(takes_part, group)) for index, group in enumerate(node_groups(arms))
    }
    return {index: group for index, group in groups.items() if group}
