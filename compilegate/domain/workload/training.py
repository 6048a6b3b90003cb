"""Reads the ``training`` section of a workload document, and what a candidate shares with it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from compilegate.domain.fields import REQUIRED, Fields
from compilegate.domain.workload.model import (
    DISTRIBUTIONS,
    FRAMEWORKS,
    PRECISIONS,
    STARTS,
    Framework,
    InstanceGroup,
    Training,
)
from compilegate.domain.workload.names import (
    check_channels,
    check_environment,
    check_hyperparameters,
)
from compilegate.domain.workload.own_facts import INSTANCE

# SageMaker ends a training job after 28 days (limits of Amazon SageMaker in the AWS reference).
MOST_HOURS = 672.0
MOST_INSTANCES = 1000
MOST_FALLBACKS = 8
MOST_SAMPLES = 10**7
MOST_LEARNING_RATE = 1000.0
S3 = "s3://"

_VERSION = re.compile(r"\d+(\.\d+)*[A-Za-z0-9.+_-]*")
_PYTHON = re.compile(r"py[23]\d{1,2}")
_LONGEST_VERSION = 32
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def parse_framework(fields: Fields) -> Framework:
    """A framework with the versions that name its image."""
    framework = Framework(
        name=fields.choice("name", FRAMEWORKS),
        version=_version(fields, "version"),
        transformers=_version(fields, "transformers", None),
        python=fields.text("python", None),
    )
    fields.done()
    if framework.python is not None and not _PYTHON.fullmatch(framework.python):
        raise fields.wrong(
            "python", "is not a Python version as images name it", "write it like py310"
        )
    if framework.transformers and not framework.name.startswith("huggingface-"):
        fix = f"use huggingface-{framework.name}, or put transformers in requirements.txt"
        raise fields.wrong("transformers", "is in the Hugging Face images only", fix)
    return framework


def _version(fields: Fields, key: str, default: Any = REQUIRED) -> Any:
    value = fields.text(key, default)
    if value is not default and (not _VERSION.fullmatch(value) or len(value) > _LONGEST_VERSION):
        raise fields.wrong(key, "is not a version", f'write it like {key}: "2.1.0"')
    return value


def parse_training(fields: Fields) -> Training:
    """One training job as it runs today."""
    training = Training(
        source_dir=_inner_path(fields, "source_dir", "must be a folder inside the project"),
        entry_point=entry_point(fields),
        instance_type=instance_type(fields),
        instance_count=instance_count(fields),
        distribution=fields.choice("distribution", DISTRIBUTIONS),
        precision=fields.choice("precision", PRECISIONS),
        batch_size=batch_size(fields),
        learning_rate=learning_rate(fields),
        hyperparameters=hyperparameters(fields),
        inputs=_inputs(fields),
        max_runtime_hours=fields.number("max_runtime_hours", "hours", above=0.0, high=MOST_HOURS),
        volume_gb=fields.integer("volume_gb", "gigabytes", low=1, high=16384, default=100),
        environment=fields.words("environment", "NCCL_DEBUG: WARN"),
        spot=fields.flag("spot", False),
        max_wait_hours=fields.number(
            "max_wait_hours", "hours", above=0.0, high=MOST_HOURS, default=None
        ),
        instance_groups=tuple(_instance_group(item) for item in fields.sections("instance_groups")),
        fallback_instances=_fallbacks(fields),
        starts_from=fields.choice("starts_from", STARTS, None),
    )
    fields.done()
    check_environment(fields, training.environment)
    _check_waiting(fields, training)
    names = [group.name for group in training.instance_groups]
    if len(set(names)) < len(names):
        raise fields.wrong("instance_groups", "has two groups of one name", "give each its own")
    return training


def entry_point(fields: Fields, default: Any = REQUIRED) -> Any:
    """A script inside the source folder."""
    return _inner_path(fields, "entry_point", "lies outside the source folder", default)


def hyperparameters(fields: Fields) -> dict[str, Any]:
    """The script's arguments beside the trial's own."""
    values = fields.mapping("hyperparameters")
    check_hyperparameters(fields, values)
    return values


def batch_size(fields: Fields, default: Any = REQUIRED) -> Any:
    """Samples per device."""
    unit = "samples per device"
    return fields.integer("batch_size", unit, low=1, high=MOST_SAMPLES, default=default)


def learning_rate(fields: Fields) -> Any:
    """The optimizer's first learning rate."""
    return fields.number("learning_rate", "learning rate", above=0.0, high=MOST_LEARNING_RATE)


def instance_count(fields: Fields, default: Any = REQUIRED) -> Any:
    """Instances of one job."""
    return fields.integer(
        "instance_count", "instances", low=1, high=MOST_INSTANCES, default=default
    )


def instance_type(fields: Fields, default: Any = REQUIRED) -> Any:
    """An instance type by its form; whether it exists is a question of facts."""
    value = fields.text("instance_type", default)
    if value is not default and not INSTANCE.fullmatch(value):
        raise fields.wrong(
            "instance_type", "is not a SageMaker instance type", "write it like ml.g5.48xlarge"
        )
    return value


def _inner_path(fields: Fields, key: str, problem: str, default: Any = REQUIRED) -> Any:
    value = fields.text(key, default)
    if value is not default and not _is_inner(value):
        fix = "write it relative to the workload file's folder or the one above it"
        inside = "write it relative to the source folder, without .."
        raise fields.wrong(key, problem, fix if key == "source_dir" else inside)
    return value


def _is_inner(path: str) -> bool:
    parts = PurePosixPath(path)
    return not parts.is_absolute() and ".." not in parts.parts and "\\" not in path


def _inputs(fields: Fields) -> dict[str, str]:
    places = fields.words("inputs", "train: s3://bucket/train/")
    for channel, place in places.items():
        problem = _input_problem(place)
        if problem:
            raise fields.wrong_item("inputs", channel, *problem)
    check_channels(fields, places)
    return places


def _input_problem(place: str) -> tuple[str, str] | None:
    write = "write s3://bucket/folder/, or a path inside the project"
    if place.startswith(S3):
        bucket = place.removeprefix(S3).partition("/")[0]
        if _BUCKET.fullmatch(bucket):
            return None
        return f"has no bucket that S3 could have ({bucket!r})", write
    if "://" in place or place.startswith("s3:"):
        return "is neither an S3 URI nor a path", "write s3://bucket/key"
    if not _is_inner(place) or not PurePosixPath(place).parts:
        return "is not a path inside the project", write
    return None


def _instance_group(fields: Fields) -> InstanceGroup:
    group = InstanceGroup(
        name=fields.text("name"),
        instance_type=instance_type(fields),
        instance_count=instance_count(fields),
    )
    return fields.complete(group)


def _fallbacks(fields: Fields) -> tuple[str, ...]:
    kinds = fields.texts("fallback_instances")
    own = fields.text("instance_type")
    for kind in kinds:
        if not INSTANCE.fullmatch(kind):
            fix = "write each like ml.g5.48xlarge"
            raise fields.wrong(
                "fallback_instances", f"holds {kind!r}, which is not a SageMaker type", fix
            )
        if kind == own:
            fix = "list other types: training.instance_type is always tried first"
            raise fields.wrong("fallback_instances", f"holds {kind!r}, the job's own type", fix)
    if len(set(kinds)) < len(kinds):
        raise fields.wrong("fallback_instances", "names a type twice", "list each once")
    if len(kinds) > MOST_FALLBACKS:
        problem = f"holds {len(kinds)} types"
        raise fields.wrong("fallback_instances", problem, f"list at most {MOST_FALLBACKS}")
    return kinds


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
