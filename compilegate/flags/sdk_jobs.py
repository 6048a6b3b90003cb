"""A job as keyword arguments of the SageMaker Python SDK: estimators (v2), ModelTrainer (v3)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from compilegate.flags.overlay import (
    CannotCarryError,
    FlagLookup,
    Form,
    Job,
    carry,
    field_of,
    hyperparameters,
    machines,
    script,
)
from compilegate.flags.reading import Choice

# By these a framework's estimator chooses more than the image: what it lets through, how it starts.
VERSIONS = (
    "framework_version", "transformers_version", "pytorch_version", "tensorflow_version",
)  # fmt: skip
_ON = {"enabled": True}
# As the SDK writes our launchers (sagemaker 2.257.7, documentation of `distribution`).
DISTRIBUTIONS: Mapping[str, Mapping[str, Any]] = {
    "torch_distributed": {"torch_distributed": _ON},
    "pytorchddp": {"pytorchddp": _ON},
    "pytorchxla": {"pytorchxla": _ON},
    "smddp": {"smdistributed": {"dataparallel": _ON}},
}


def estimator_arguments(
    name: str,
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Keyword arguments of HuggingFace, PyTorch, TensorFlow or Estimator with the flag applied.

    ``arguments`` are those of today's job, the baseline's. ``names`` are the script's own names
    for our hyperparameters, such as ``{"batch_size": "per_device_train_batch_size"}``. A flag that
    cannot be read or applied leaves the job as it is, logged and tagged as a baseline run.
    """
    return carry(arguments, ESTIMATOR, FlagLookup(name, stage, client, names or {}))


def model_trainer_arguments(
    name: str,
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Keyword arguments of ModelTrainer with the flag applied.

    ``compute`` and ``source_code`` may be the SDK's own objects or mappings; ours are copies.
    ``names`` and failures as in ``estimator_arguments``.
    """
    return carry(arguments, MODEL_TRAINER, FlagLookup(name, stage, client, names or {}))


def _estimator(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    overrides, changed = choice.overrides, dict(job)
    if job.get("compiler_config") is not None:
        raise CannotCarryError("compiler_config is set, and the flag sets a compiler too")
    versions = [name for name in VERSIONS if job.get(name)]
    if "framework" in overrides and versions:
        raise CannotCarryError(f"{versions[0]} names one framework, the flag another")
    entry_point = overrides.get("entry_point", job.get("entry_point"))
    changed["hyperparameters"] = hyperparameters(
        job.get("hyperparameters"), choice, lookup.names, script=entry_point
    )
    if "image" in overrides:
        changed["image_uri"] = overrides["image"]
    changed |= machines(overrides, job.get("instance_groups"))
    if "distribution" in overrides:
        changed = _launched(changed, overrides["distribution"])
    if "entry_point" in overrides:
        changed["entry_point"] = script(lookup.name, entry_point, job.get("source_dir"))
    return changed


def _launched(job: Job, distribution: str) -> Job:
    others = {key: value for key, value in job.items() if key != "distribution"}
    if distribution == "none":
        return others
    if distribution not in DISTRIBUTIONS:
        raise CannotCarryError(f"distribution {distribution} needs settings that a flag lacks")
    return {**others, "distribution": copy.deepcopy(DISTRIBUTIONS[distribution])}


def _model_trainer(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    overrides, changed, source = choice.overrides, dict(job), job.get("source_code")
    own = job.get("hyperparameters")
    if own is not None and not isinstance(own, Mapping):
        raise CannotCarryError("hyperparameters are in a file: pass them as a mapping")
    if "distribution" in overrides:
        raise CannotCarryError("another distribution needs an object of the SDK")
    entry_point = overrides.get("entry_point", field_of(source, "entry_script"))
    changed["hyperparameters"] = hyperparameters(own, choice, lookup.names, script=entry_point)
    if "image" in overrides:
        if job.get("algorithm_name"):
            raise CannotCarryError("the job names an algorithm, the flag an image")
        changed["training_image"] = overrides["image"]
    changes = machines(overrides, field_of(job.get("compute"), "instance_groups"))
    if changes:
        changed["compute"] = _with(job.get("compute"), changes)
    if "entry_point" in overrides:
        entry = script(lookup.name, entry_point, field_of(source, "source_dir"))
        if field_of(source, "command"):
            raise CannotCarryError("the job starts a command, the flag an entry script")
        changed["source_code"] = _with(source, {"entry_script": entry})
    return changed


def _with(settings: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with other fields: of the SDK's own (pydantic) object, or of a mapping."""
    if settings is None or isinstance(settings, Mapping):
        return {**(settings or {}), **changes}
    return settings.model_copy(update=dict(changes))


ESTIMATOR = Form(_estimator, image=lambda job: job.get("image_uri"))
MODEL_TRAINER = Form(
    _model_trainer, image=lambda job: job.get("training_image"), tag_keys=("key", "value")
)
