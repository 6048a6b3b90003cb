"""A job as an estimator of the SageMaker Python SDK v2 takes it: keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.flags import overlay
from compilegate.flags.overlay import CannotCarryError, FlagLookup, Form, Job, carry, deployment
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
    """Keyword arguments of HuggingFace, PyTorch, TensorFlow or Estimator with the flag laid over.

    ``arguments`` are those of today's job, the baseline's. ``names`` are the script's own names
    for our hyperparameters, such as ``{"batch_size": "per_device_train_batch_size"}``. Whatever
    cannot be read or carried leaves the job as it is, logged and tagged as a baseline run.
    """
    return carry(arguments, ESTIMATOR, FlagLookup(name, stage, client, names or {}))


class _Estimator:
    def overridden(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        overrides, changed = choice.overrides, dict(job)
        if job.get("compiler_config") is not None:
            raise CannotCarryError("compiler_config is set: the flag brings a compiler of its own")
        versions = [name for name in VERSIONS if job.get(name)]
        if "framework" in overrides and versions:
            raise CannotCarryError(f"{versions[0]} says one framework, the flag another")
        changed["hyperparameters"] = overlay.hyperparameters(
            job.get("hyperparameters"), choice, lookup.names,
            script=overrides.get("entry_point", job.get("entry_point")),
        )  # fmt: skip
        if "image" in overrides:
            changed["image_uri"] = overrides["image"]
        machines = {
            key: overrides[key] for key in ("instance_type", "instance_count") if key in overrides
        }
        if machines and job.get("instance_groups"):
            raise CannotCarryError("the job has instance_groups, the flag one kind of instance")
        changed |= machines
        if "distribution" in overrides:
            changed = _launched(changed, overrides["distribution"])
        if "entry_point" in overrides:
            source = job.get("source_dir")
            changed["entry_point"] = overlay.script(lookup.name, overrides["entry_point"], source)
        return changed

    def marked(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        return {
            **job,
            "tags": overlay.tag_list(
                job.get("tags"), overlay.tags(lookup.name, choice, stage=deployment(lookup))
            ),
            "environment": overlay.variables(
                job.get("environment"), choice, stage=deployment(lookup), image=job.get("image_uri")
            ),
        }


def _launched(job: Job, distribution: str) -> Job:
    others = {key: value for key, value in job.items() if key != "distribution"}
    if distribution == "none":
        return others
    if distribution not in DISTRIBUTIONS:
        raise CannotCarryError(f"distribution {distribution} needs settings that a flag has not")
    return {**others, "distribution": dict(DISTRIBUTIONS[distribution])}


ESTIMATOR: Form = _Estimator()


def model_trainer_arguments(
    name: str,
    *,
    stage: str | None = None,
    client: Any = None,
    names: Mapping[str, str] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Keyword arguments of ModelTrainer with the flag laid over.

    ``compute`` and ``source_code`` may be the SDK's own objects or mappings; ours are copies.
    ``names`` and failures as in ``estimator_arguments``.
    """
    return carry(arguments, MODEL_TRAINER, FlagLookup(name, stage, client, names or {}))


class _ModelTrainer:
    def overridden(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        overrides, changed = choice.overrides, dict(job)
        own = job.get("hyperparameters")
        if own is not None and not isinstance(own, Mapping):
            raise CannotCarryError("hyperparameters are in a file: pass them as a mapping")
        if "distribution" in overrides:
            raise CannotCarryError("another distribution is an object of the SDK's own")
        script = overrides.get("entry_point", _of(job.get("source_code"), "entry_script"))
        changed["hyperparameters"] = overlay.hyperparameters(
            own, choice, lookup.names, script=script
        )
        if "image" in overrides:
            if job.get("algorithm_name"):
                raise CannotCarryError("the job names an algorithm, the flag an image")
            changed["training_image"] = overrides["image"]
        machines = {
            key: overrides[key] for key in ("instance_type", "instance_count") if key in overrides
        }
        if machines:
            if _of(job.get("compute"), "instance_groups"):
                raise CannotCarryError("the job has instance_groups, the flag one kind of instance")
            changed["compute"] = _with(job.get("compute"), machines)
        if "entry_point" in overrides:
            source = job.get("source_code")
            entry = overlay.script(lookup.name, overrides["entry_point"], _of(source, "source_dir"))
            if _of(source, "command"):
                raise CannotCarryError("the job starts a command, the flag an entry script")
            changed["source_code"] = _with(source, {"entry_script": entry})
        return changed

    def marked(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        image = job.get("training_image")
        own = overlay.tags(lookup.name, choice, stage=deployment(lookup))
        return {
            **job,
            "tags": overlay.tag_list(job.get("tags"), own, key="key", value="value"),
            "environment": overlay.variables(
                job.get("environment"), choice, stage=deployment(lookup), image=image
            ),
        }


def _of(settings: Any, key: str) -> Any:
    """One field of an object of the SDK's, or of a mapping."""
    return settings.get(key) if isinstance(settings, Mapping) else getattr(settings, key, None)


def _with(settings: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with other fields: of the SDK's own (pydantic) object, or of a mapping."""
    if settings is None or isinstance(settings, Mapping):
        return {**(settings or {}), **changes}
    return settings.model_copy(update=dict(changes))


MODEL_TRAINER: Form = _ModelTrainer()
