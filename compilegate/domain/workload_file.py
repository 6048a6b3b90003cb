"""Reads a workload document into a Workload, or says what is wrong with it."""

from __future__ import annotations

import re
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import Fields
from compilegate.domain.workload import (
    BASELINE,
    COMPILE_MODES,
    COMPILERS,
    DISTRIBUTIONS,
    FAMILIES,
    FRAMEWORKS,
    GOALS,
    PADDINGS,
    PRECISIONS,
    QUALITY_RUNS,
    SCALINGS,
    SCHEMA,
    Candidate,
    Framework,
    InstanceGroup,
    Model,
    Policy,
    Profile,
    Quality,
    Schedule,
    Shapes,
    Training,
    Workload,
)
from compilegate.domain.workload_facts import known_better

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_INSTANCE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9]+")

# Every candidate has a letter in its jobs' names, and alpha / K to prove itself at.
MOST_CANDIDATES = 8


def parse_workload(document: object) -> Workload:
    """Read a workload document.

    Raises InvalidInputError naming the field, the value and the fix.
    """
    fields = Fields(document)
    if fields.integer("schema", "schema version") != SCHEMA:
        raise fields.wrong("schema", "is a version this release cannot read", f"use {SCHEMA}")
    workload = Workload(
        name=_name(fields),
        owner=fields.text("owner", None),
        framework=_framework(fields.section("framework")),
        model=_model(fields.section("model")),
        training=_training(fields.section("training")),
        shapes=_shapes(fields.section("shapes")),
        schedule=_schedule(fields.section("schedule")),
        profile=_profile(fields.optional_section("profile")),
        quality=_quality(fields.section("quality")),
        policy=parse_policy(fields.optional_section("policy")),
        candidates=_candidates(fields),
        tags={key: str(value) for key, value in fields.mapping("tags").items()},
        facts=known_better(fields.optional_section("facts")),
    )
    fields.done()
    return workload


def _name(fields: Fields) -> str:
    name: str = fields.text("name")
    if not _NAME.fullmatch(name):
        raise fields.wrong(
            "name",
            "has other characters than a name may have",
            "use 1 to 32 lower-case letters, digits and inner hyphens, such as bert-docs",
        )
    return name


def _framework(fields: Fields) -> Framework:
    framework = Framework(
        name=fields.choice("name", FRAMEWORKS),
        version=fields.text("version"),
        transformers=fields.text("transformers", None),
        python=fields.text("python", None),
    )
    fields.done()
    return framework


def _model(fields: Fields) -> Model:
    model = Model(family=fields.choice("family", FAMILIES), name=fields.text("name"))
    fields.done()
    return model


def _training(fields: Fields) -> Training:
    training = Training(
        source_dir=fields.text("source_dir"),
        entry_point=fields.text("entry_point"),
        instance_type=_instance_type(fields),
        instance_count=fields.integer("instance_count", "instances", low=1, high=1000),
        distribution=fields.choice("distribution", DISTRIBUTIONS),
        precision=fields.choice("precision", PRECISIONS),
        batch_size=fields.integer("batch_size", "samples per device", low=1),
        learning_rate=fields.number("learning_rate", "learning rate", above=0.0),
        hyperparameters=fields.mapping("hyperparameters"),
        inputs={key: str(value) for key, value in fields.mapping("inputs").items()},
        max_runtime_hours=fields.number("max_runtime_hours", "hours", above=0.0, high=672.0),
        volume_gb=fields.integer("volume_gb", "gigabytes", low=1, high=16384, default=100),
        environment={key: str(value) for key, value in fields.mapping("environment").items()},
        spot=fields.flag("spot", False),
        max_wait_hours=fields.number(
            "max_wait_hours", "hours", above=0.0, high=672.0, default=None
        ),
        instance_groups=tuple(_instance_group(item) for item in fields.sections("instance_groups")),
    )
    fields.done()
    _check_waiting(fields, training)
    return training


def _check_waiting(fields: Fields, training: Training) -> None:
    wait = training.max_wait_hours
    if wait is not None and not training.spot:
        raise fields.wrong("max_wait_hours", "is for spot jobs only", "add spot: true or remove it")
    if wait is not None and wait < training.max_runtime_hours:
        raise fields.wrong(
            "max_wait_hours",
            f"is below max_runtime_hours ({training.max_runtime_hours:g})",
            "it counts the training too: make it at least as long",
        )


def _instance_group(fields: Fields) -> InstanceGroup:
    group = InstanceGroup(
        name=fields.text("name"),
        instance_type=_instance_type(fields),
        instance_count=fields.integer("instance_count", "instances", low=1, high=1000),
    )
    fields.done()
    return group


def _instance_type(fields: Fields, default: Any = ...) -> Any:
    if default is None and fields.text("instance_type", None) is None:
        return None
    value: str = fields.text("instance_type")
    if not _INSTANCE.fullmatch(value):
        raise fields.wrong(
            "instance_type", "is not a SageMaker instance type", "write it like ml.g5.48xlarge"
        )
    return value


def _shapes(fields: Fields) -> Shapes:
    shapes = Shapes(
        static=fields.flag("static"),
        padding=fields.choice("padding", PADDINGS, "max_length"),
        drop_last=fields.flag("drop_last", True),
    )
    fields.done()
    return shapes


def _schedule(fields: Fields) -> Schedule:
    schedule = Schedule(
        runs_per_week=fields.number("runs_per_week", "runs per week", above=0.0),
        run_hours=fields.number("run_hours", "hours", above=0.0),
        cron=fields.text("cron", None),
    )
    fields.done()
    return schedule


def _profile(fields: Fields | None) -> Profile | None:
    if fields is None:
        return None
    names = ("gpu_utilization", "data_wait_fraction", "communication_fraction")
    shares = {
        name: fields.number(name, "share of 1", low=0.0, high=1.0, default=None) for name in names
    }
    gib = fields.number("peak_memory_gib", "GiB per device", above=0.0, default=None)
    warm, cold = (
        fields.number(key, "seconds", low=0.0, default=None)
        for key in ("compile_seconds", "compile_seconds_cold")
    )
    fields.done()
    return Profile(**shares, peak_memory_gib=gib, compile_seconds=warm, compile_seconds_cold=cold)


def _quality(fields: Fields) -> Quality:
    quality = Quality(
        metric=fields.text("metric"),
        goal=fields.choice("goal", GOALS),
        margin=fields.number("margin", "the metric's own unit", above=0.0),
        history=fields.numbers("history"),
    )
    fields.done()
    return quality


def parse_policy(fields: Fields | None) -> Policy:
    """Read a policy section, defaults where it is absent."""
    if fields is None:
        return Policy()
    base = Policy()
    policy = Policy(
        promote_speedup=fields.number(
            "promote_speedup", "times baseline", low=1.0, default=base.promote_speedup
        ),
        reject_speedup=fields.number(
            "reject_speedup", "times baseline", low=1.0, default=base.reject_speedup
        ),
        alpha=fields.number("alpha", "error probability", above=0.0, high=0.5, default=base.alpha),
        quality_runs=fields.choice("quality_runs", QUALITY_RUNS, base.quality_runs),
        max_quality_runs=fields.integer(
            "max_quality_runs", "runs per candidate", low=2, default=base.max_quality_runs
        ),
        probation_runs=fields.integer("probation_runs", "runs", low=1, default=base.probation_runs),
        max_trial_usd=fields.number(
            "max_trial_usd", "US dollars", above=0.0, default=base.max_trial_usd
        ),
    )
    fields.done()
    if policy.promote_speedup < policy.reject_speedup:
        raise fields.wrong(
            "promote_speedup",
            f"is below reject_speedup ({policy.reject_speedup:g})",
            "promote at or above the speed-up below which you would reject",
        )
    return policy


def _candidates(fields: Fields) -> tuple[Candidate, ...]:
    candidates = tuple(_candidate(item) for item in fields.sections("candidates"))
    if len(candidates) > MOST_CANDIDATES:
        raise fields.wrong(
            "candidates",
            f"names {len(candidates)} candidates",
            f"name at most {MOST_CANDIDATES}, better three: they share the error allowed, so each "
            "one more makes a proof longer for all",
        )
    names = [candidate.name for candidate in candidates]
    for name in names:
        if name == BASELINE or names.count(name) > 1:
            raise InvalidInputError(
                "is used twice or reserved",
                field="candidates.name",
                value=name,
                fix=f"give every candidate its own name, other than {BASELINE}",
            )
    return candidates


def _candidate(fields: Fields) -> Candidate:
    candidate = Candidate(
        name=_name(fields),
        compiler=fields.choice("compiler", COMPILERS, None),
        batch_size=fields.integer("batch_size", "samples per device", low=1, default=None),
        learning_rate_scaling=fields.choice("learning_rate_scaling", SCALINGS, None),
        instance_type=_instance_type(fields, None),
        instance_count=fields.integer("instance_count", "instances", low=1, default=None),
        precision=fields.choice("precision", PRECISIONS, None),
        distribution=fields.choice("distribution", DISTRIBUTIONS, None),
        compile_mode=fields.choice("compile_mode", COMPILE_MODES, None),
        framework=_own_framework(fields),
        entry_point=fields.text("entry_point", None),
        hyperparameters=fields.mapping("hyperparameters") or None,
    )
    fields.done()
    if candidate.compile_mode and candidate.compiler != "torch_compile":
        raise fields.wrong(
            "compile_mode", "is a setting of torch_compile", "add compiler: torch_compile"
        )
    if not candidate.overrides():
        raise fields.wrong("name", "names a candidate that changes nothing", "add what it changes")
    return candidate


def _own_framework(fields: Fields) -> Framework | None:
    found = fields.optional_section("framework")
    return None if found is None else _framework(found)
