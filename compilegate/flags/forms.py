"""A team's job: of the SageMaker SDK (v2, v3), as CreateTrainingJob takes it, or single values.

Requests are for boto3, Step Functions and anything that writes them; values for a request that is
written before anybody knows what the flag will say.
"""

from __future__ import annotations

import copy
import json
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
    distribution = overrides.get("distribution")
    if distribution is not None:
        changed.pop("distribution", None)
        if distribution not in (*DISTRIBUTIONS, "none"):
            raise CannotCarryError(f"distribution {distribution} needs settings that a flag lacks")
        if distribution != "none":
            changed["distribution"] = copy.deepcopy(DISTRIBUTIONS[distribution])
    if "entry_point" in overrides:
        changed["entry_point"] = script(lookup.name, entry_point, job.get("source_dir"))
    return changed


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


# Of the values of a request, what is not a hyperparameter.
_MACHINE = ("image", "instance_count", "instance_type")
# What the SDK's estimators add for the toolkit in the image.
_PROGRAM, _SOURCE, _INSTANCE = (
    "sagemaker_program", "sagemaker_submit_directory", "sagemaker_instance_type",
)  # fmt: skip


def training_job_request(
    name: str,
    request: Mapping[str, Any],
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The request with the flag applied, as a new mapping.

    Values are written as JSON text into ``HyperParameters``, as the SDK does and as the trial's
    own jobs had them. ``names`` and failures as in ``estimator_arguments``.
    """
    return carry(request, REQUEST, FlagLookup(name, stage, client, names or {}))


def pipeline_values(
    name: str,
    values: Mapping[str, Any],
    *,
    entry_point: str | None = None,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Values of a request that is written already, under their names, and the ``arm`` they make.

    ``values`` are today's: hyperparameters by name, and where the request takes them from here
    ``image``, ``instance_type``, ``instance_count``. Hyperparameters come back as JSON text. A flag
    that sets anything else is not followed, because the request could not carry all of it.
    ``entry_point`` is the script that the job starts: launcher and others take other texts.
    """
    lookup = FlagLookup(name, stage, client, names or {})
    job = carry({"values": dict(values), "entry_point": entry_point}, _VALUES, lookup)
    texts = {
        key: value if key in _MACHINE else json.dumps(value) for key, value in job["values"].items()
    }
    return {**texts, "arm": job["environment"]["COMPILEGATE_ARM"]}


def _followed(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    today, overrides = job["values"], choice.overrides
    if "distribution" in overrides or "entry_point" in overrides:
        raise CannotCarryError("the flag sets how the script starts, which single values cannot")
    own = {key: value for key, value in today.items() if key not in _MACHINE}
    merged = hyperparameters(own, choice, lookup.names, script=job["entry_point"])
    merged |= {key: overrides[key] for key in _MACHINE if key in overrides}
    missing = sorted(merged.keys() - {*today, "arm"})
    if missing:
        raise CannotCarryError(
            f"the flag sets {', '.join(missing)} too: take it from this step as well, and pass "
            "what the job has today"
        )
    return {**job, "values": {key: merged.get(key, today[key]) for key in today}}


def _overridden(job: Job, choice: Choice, lookup: FlagLookup) -> Job:
    overrides, own = choice.overrides, dict(job.get("HyperParameters") or {})
    if "distribution" in overrides:
        raise CannotCarryError("another distribution needs an estimator: use the SDK's")
    if "entry_point" in overrides:
        script(lookup.name, overrides["entry_point"], _decoded(own.get(_SOURCE)))
        own[_PROGRAM] = json.dumps(overrides["entry_point"])
    if "instance_type" in overrides and _INSTANCE in own:
        own[_INSTANCE] = json.dumps(overrides["instance_type"])
    merged = hyperparameters(own, choice, lookup.names, script=_decoded(own.get(_PROGRAM)))
    changes = {key: value for key, value in merged.items() if value is not own.get(key)}
    texts = {key: json.dumps(value) for key, value in changes.items()}
    changed = {**job, "HyperParameters": {**own, **texts}}
    if "image" in overrides:
        algorithm = job.get("AlgorithmSpecification") or {}
        if "TrainingImage" not in algorithm:
            raise CannotCarryError("the job names no TrainingImage that the flag's could replace")
        changed["AlgorithmSpecification"] = {**algorithm, "TrainingImage": overrides["image"]}
    cluster = job.get("ResourceConfig") or {}
    fields = {"instance_type": "InstanceType", "instance_count": "InstanceCount"}
    named = machines(overrides, cluster.get("InstanceGroups"))
    if named:
        laid = {fields[key]: value for key, value in named.items()}
        changed["ResourceConfig"] = {**cluster, **laid}
    return changed


def _decoded(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _image(job: Job) -> Any:
    return (job.get("AlgorithmSpecification") or {}).get("TrainingImage")


REQUEST = Form(_overridden, image=_image, tags="Tags", environment="Environment")
_VALUES = Form(_followed, image=lambda _: None)
