"""A job as CreateTrainingJob takes it: boto3, Step Functions, anything that writes the request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain.request.hyperparameters import encoded
from compilegate.flags import overlay
from compilegate.flags.overlay import CannotCarryError, FlagLookup, Form, Job, carry, deployment
from compilegate.flags.reading import Choice

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
    """The request with the flag laid over; the one that was given is left alone.

    Values are written as JSON text into ``HyperParameters``, as the SDK does and as the trial's
    own jobs had them. ``names`` and failures as in ``estimator_arguments``.
    """
    return carry(request, REQUEST, FlagLookup(name, stage, client, names or {}))


class _Request:
    def overridden(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        overrides, hyperparameters = choice.overrides, dict(job.get("HyperParameters") or {})
        if "distribution" in overrides:
            raise CannotCarryError("another distribution needs an estimator: use the SDK's")
        if "entry_point" in overrides:
            source = _decoded(hyperparameters.get(_SOURCE))
            overlay.script(lookup.name, overrides["entry_point"], source)
            hyperparameters[_PROGRAM] = json.dumps(overrides["entry_point"])
        if "instance_type" in overrides and _INSTANCE in hyperparameters:
            hyperparameters[_INSTANCE] = json.dumps(overrides["instance_type"])
        script = _decoded(hyperparameters.get(_PROGRAM))
        laid = overlay.hyperparameters(hyperparameters, choice, lookup.names, script=script)
        changes = {
            key: value for key, value in laid.items() if value is not hyperparameters.get(key)
        }
        return {
            **job,
            **_algorithm(job, overrides),
            **_machines(job, overrides),
            "HyperParameters": {**hyperparameters, **encoded(changes)},
        }

    def marked(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        image = (job.get("AlgorithmSpecification") or {}).get("TrainingImage")
        return {
            **job,
            "Tags": overlay.tag_list(
                job.get("Tags"), overlay.tags(lookup.name, choice, stage=deployment(lookup))
            ),
            "Environment": overlay.variables(
                job.get("Environment"), choice, stage=deployment(lookup), image=image
            ),
        }


def _algorithm(job: Job, overrides: Mapping[str, Any]) -> Job:
    if "image" not in overrides:
        return {}
    algorithm = job.get("AlgorithmSpecification") or {}
    if "TrainingImage" not in algorithm:
        raise CannotCarryError("the job names no TrainingImage that the flag's could replace")
    return {"AlgorithmSpecification": {**algorithm, "TrainingImage": overrides["image"]}}


def _machines(job: Job, overrides: Mapping[str, Any]) -> Job:
    fields = {"instance_type": "InstanceType", "instance_count": "InstanceCount"}
    changes = {fields[key]: overrides[key] for key in fields if key in overrides}
    if not changes:
        return {}
    cluster = job.get("ResourceConfig") or {}
    if cluster.get("InstanceGroups"):
        raise CannotCarryError("the job has InstanceGroups, the flag one kind of instance")
    return {"ResourceConfig": {**cluster, **changes}}


def _decoded(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


REQUEST: Form = _Request()
