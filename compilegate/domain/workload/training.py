"""Reads the ``training`` section of a workload document, and what a candidate shares with it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from compilegate.domain.expected import REQUIRED, Form
from compilegate.domain.fields import Fields
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

_VERSION = Form(
    re.compile(r"\d+(\.\d+)*[A-Za-z0-9.+_-]*"), "is not a version", 'write it like "2.1.0"', 32
)
_PYTHON = Form(
    re.compile(r"py[23]\d{1,2}"), "is not a Python version as images name it",
    "write it like py310",
)  # fmt: skip
# Relative, and never out of the folder that it starts from.
_INNER = re.compile(r"(?!/)(?!(.*/)?\.\.(/|$))[^\\]+")
_SOURCE_DIR = Form(
    _INNER, "must be a folder inside the project",
    "write it relative to the workload file's folder or the one above it",
)  # fmt: skip
_ENTRY_POINT = Form(
    _INNER, "lies outside the source folder", "write it relative to the source folder, without .."
)
_INSTANCE = Form(INSTANCE, "is not a SageMaker instance type", "write it like ml.g5.48xlarge")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def parse_framework(fields: Fields) -> Framework:
    """A framework with the versions that name its image."""
    framework = Framework(
        name=fields.choice("name", FRAMEWORKS, about="the kind of image"),
        version=fields.text(
            "version", form=_VERSION, about="of PyTorch, TensorFlow, XGBoost or scikit-learn"
        ),
        transformers=fields.text(
            "transformers", None, form=_VERSION, about="version, in Hugging Face images only"
        ),
        python=fields.text("python", None, form=_PYTHON, about="as images name it, such as py310"),
    )
    if fields.done() and framework.transformers and not framework.name.startswith("huggingface-"):
        fix = f"use huggingface-{framework.name}, or put transformers in requirements.txt"
        fields.refuse("transformers", "is in the Hugging Face images only", fix)
    return framework


def parse_training(fields: Fields) -> Training:
    """One training job as it runs today."""
    training = Training(
        source_dir=fields.text(
            "source_dir", form=_SOURCE_DIR, about="folder of the code, uploaded as a whole"
        ),
        entry_point=entry_point(fields),
        instance_type=instance_type(fields),
        instance_count=instance_count(fields),
        distribution=fields.choice(
            "distribution", DISTRIBUTIONS, about="what starts a process on every GPU"
        ),
        precision=fields.choice("precision", PRECISIONS, about="in which the job trains today"),
        batch_size=batch_size(fields),
        learning_rate=learning_rate(fields),
        hyperparameters=hyperparameters(fields),
        inputs=_inputs(fields),
        max_runtime_hours=fields.number(
            "max_runtime_hours", "hours", above=0.0, high=MOST_HOURS,
            about="after which a job is stopped",
        ),
        volume_gb=fields.integer(
            "volume_gb", "gigabytes", low=1, high=16384, default=100, about="of an instance's disk"
        ),
        environment=fields.words(
            "environment", "NCCL_DEBUG: WARN", about="variables of every job"
        ),
        spot=fields.flag("spot", False, about="managed spot training, in every arm"),
        max_wait_hours=fields.number(
            "max_wait_hours", "hours", above=0.0, high=MOST_HOURS, default=None,
            about="spot only: waiting and training together",
        ),
        instance_groups=tuple(
            _instance_group(item)
            for item in fields.sections(
                "instance_groups", about="groups of a heterogeneous cluster"
            )
        ),
        fallback_instances=_fallbacks(fields),
        starts_from=fields.choice(
            "starts_from", STARTS, None, about="which weights a run begins with"
        ),
    )  # fmt: skip
    check_environment(fields, training.environment)
    if fields.done():
        _check_waiting(fields, training)
        _check_fallbacks(fields, training)
        names = [group.name for group in training.instance_groups]
        if len(set(names)) < len(names):
            fields.refuse("instance_groups", "has two groups of one name", "give each its own")
    return training


def entry_point(fields: Fields, default: Any = REQUIRED) -> Any:
    """A script inside the source folder."""
    about = "script that the job starts; launch.py runs any script"
    return fields.text("entry_point", default, form=_ENTRY_POINT, about=about)


def hyperparameters(fields: Fields) -> dict[str, Any]:
    """The script's arguments beside the trial's own."""
    values = fields.mapping("hyperparameters", about="arguments of the script, plain values")
    check_hyperparameters(fields, values)
    return values


def batch_size(fields: Fields, default: Any = REQUIRED) -> Any:
    """Samples per device."""
    return fields.integer(
        "batch_size", "samples per device", low=1, high=MOST_SAMPLES, default=default,
        about="of one step on one GPU",
    )  # fmt: skip


def learning_rate(fields: Fields) -> Any:
    """The optimizer's first learning rate."""
    return fields.number(
        "learning_rate", "learning rate", above=0.0, high=MOST_LEARNING_RATE,
        about="the optimizer's first",
    )  # fmt: skip


def instance_count(fields: Fields, default: Any = REQUIRED) -> Any:
    """Instances of one job."""
    return fields.integer(
        "instance_count", "instances", low=1, high=MOST_INSTANCES, default=default,
        about="of one job",
    )  # fmt: skip


def instance_type(fields: Fields, default: Any = REQUIRED) -> Any:
    """An instance type by its form; whether it exists is a question of facts."""
    about = "SageMaker instance type of one node"
    return fields.text("instance_type", default, form=_INSTANCE, about=about)


def _is_inner(path: str) -> bool:
    return bool(_INNER.fullmatch(path))


def _inputs(fields: Fields) -> dict[str, str]:
    places = fields.words(
        "inputs", "train: s3://bucket/train/",
        about="channel to S3 URI; a relative path is uploaded",
    )  # fmt: skip
    for channel, place in places.items():
        problem = _input_problem(place)
        if problem:
            fields.refuse_item("inputs", channel, *problem)
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
        name=fields.text("name", about="of the group"),
        instance_type=instance_type(fields),
        instance_count=instance_count(fields),
    )
    return fields.complete(group)


def _fallbacks(fields: Fields) -> tuple[str, ...]:
    about = "types for production's baseline while its own has no capacity"
    kinds = fields.texts("fallback_instances", about=about)
    for kind in kinds:
        if not INSTANCE.fullmatch(kind):
            problem = f"holds {kind!r}, which is not a SageMaker type"
            fields.refuse("fallback_instances", problem, "write each like ml.g5.48xlarge")
    return kinds


def _check_fallbacks(fields: Fields, training: Training) -> None:
    kinds, own = training.fallback_instances, training.instance_type
    if own in kinds:
        fix = "list other types: training.instance_type is always tried first"
        fields.refuse("fallback_instances", f"holds {own!r}, the job's own type", fix)
    if len(set(kinds)) < len(kinds):
        fields.refuse("fallback_instances", "names a type twice", "list each once")
    if len(kinds) > MOST_FALLBACKS:
        problem = f"holds {len(kinds)} types"
        fields.refuse("fallback_instances", problem, f"list at most {MOST_FALLBACKS}")


def _check_waiting(fields: Fields, training: Training) -> None:
    wait = training.max_wait_hours
    if wait is not None and not training.spot:
        fix = "add spot: true or remove it"
        fields.refuse("max_wait_hours", "is for spot jobs only", fix)
    elif wait is not None and wait < training.max_runtime_hours:
        fields.refuse(
            "max_wait_hours",
            f"is below max_runtime_hours ({training.max_runtime_hours:g})",
            "it counts the training too: make it at least as long",
        )
