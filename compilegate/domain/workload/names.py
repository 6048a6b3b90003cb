"""Names in a workload file that the trial needs for itself, or that no job can have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from compilegate.domain.expected import Form
from compilegate.domain.fields import Fields

# What a trial passes to every script itself, and where a workload file sets it.
OWN_HYPERPARAMETERS = {
    "arm": "remove it: each arm gets its own name",
    "compiler": "write compiler on a candidate",
    "compile_mode": "write compile_mode on a candidate",
    "precision": "write training.precision, or precision on a candidate",
    "batch_size": "write training.batch_size, or batch_size on a candidate",
    "learning_rate": "write training.learning_rate; on a candidate learning_rate_scaling",
    "seed": "remove it: each run gets its own, the same in all arms",
    "replicate": "remove it: each run gets its own",
    "max_steps": "name a whole run's length otherwise: full_run_steps with launch.py, steps with "
    "the ready-made scripts",
    "training_script": "write training.entry_point",
}
# The settings of SageMaker's model-parallel library, JSON text in a workload file. The library
# reads them as SM_HP_MP_PARAMETERS, so they are the whole job's.
PARTITIONING = "mp_parameters"
OWN_ENVIRONMENT = ("TORCHINDUCTOR_CACHE_DIR", "GPU_NUM_DEVICES")
# The trial's own; and what the training toolkit fills in for the script.
OWN_PREFIXES = ("COMPILEGATE_", "SM_", "SAGEMAKER_")
# AWS reserves the first; the second is what the roles of a deployment are limited to.
TAG_PREFIXES = ("aws:", "compilegate:")

_HYPERPARAMETER = re.compile(r"[A-Za-z0-9_][^\s=]*")
# As a job prints it, ``name=value``, and as a metric of the service.
METRIC = Form(
    re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@%+-]*"), "cannot be printed as name=value",
    "use letters, digits and _./:@%+-, such as eval_accuracy",
)  # fmt: skip
_CHANNEL_IN_ENVIRONMENT = re.compile(r"[^A-Za-z0-9_]")


def check_hyperparameters(fields: Fields, values: Mapping[str, object]) -> None:
    """Names that reach the script as ``--name value`` and are not the trial's own."""
    for name in values:
        if name in OWN_HYPERPARAMETERS:
            problem = "is set by the trial, so this value would never reach the script"
            fields.refuse_item("hyperparameters", name, problem, OWN_HYPERPARAMETERS[name])
        elif not _HYPERPARAMETER.fullmatch(name) or not name.isprintable():
            problem = "is a name that cannot be an argument of a script"
            fix = "use letters, digits and _@%+:,./- only, without a leading dash"
            fields.refuse_item("hyperparameters", name, problem, fix)
    if PARTITIONING in values and json_object(values[PARTITIONING]) is None:
        problem, fix = "must be a JSON object in quotes", """for example '{"partitions": 2}'"""
        fields.refuse_item("hyperparameters", PARTITIONING, problem, fix)


def json_object(value: object) -> dict[str, Any] | None:
    """The mapping that a value holds as JSON text; None for any other value."""
    try:
        document = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def check_environment(fields: Fields, names: Iterable[str]) -> None:
    """Variables that the trial or the training toolkit sets."""
    for name in names:
        if name in OWN_ENVIRONMENT or name.upper().startswith(OWN_PREFIXES):
            problem = "is set by the trial or by SageMaker"
            fields.refuse_item("environment", name, problem, "remove it")


def check_tags(fields: Fields, names: Iterable[str], *, owner: str | None) -> None:
    """Keys with a reserved prefix, and the owner named twice."""
    for name in names:
        if name.lower().startswith(TAG_PREFIXES):
            problem = f"begins with a reserved prefix ({' or '.join(TAG_PREFIXES)})"
            fields.refuse_item("tags", name, problem, "choose another key")
        elif name == "owner" and owner is not None:
            problem = "is the tag that `owner` at the top becomes"
            fields.refuse_item("tags", name, problem, "keep one of the two")


def check_channels(fields: Fields, names: Iterable[str]) -> None:
    """Two channels whose folders the script would find under one variable."""
    seen: dict[str, str] = {}
    for name in names:
        variable = f"SM_CHANNEL_{_CHANNEL_IN_ENVIRONMENT.sub('_', name).upper()}"
        if variable in seen:
            problem = f"is {variable} in the job, and so is the channel {seen[variable]}"
            fields.refuse_item("inputs", name, problem, "choose another name for one")
        seen[variable] = name
