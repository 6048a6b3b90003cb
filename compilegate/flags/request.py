"""A job as CreateTrainingJob takes it: boto3, Step Functions, anything that writes the request.

Or single values of one, for a request that is written before anybody knows what the flag will say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.flags.overlay import (
    CannotCarryError,
    FlagLookup,
    Form,
    Job,
    carry,
    hyperparameters,
    machines,
    script,
)
from compilegate.flags.reading import Choice

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
    return {
        **job,
        **_algorithm(job, overrides),
        **_machines(job, overrides),
        "HyperParameters": {**own, **{key: json.dumps(value) for key, value in changes.items()}},
    }


def _algorithm(job: Job, overrides: Mapping[str, Any]) -> Job:
    if "image" not in overrides:
        return {}
    algorithm = job.get("AlgorithmSpecification") or {}
    if "TrainingImage" not in algorithm:
        raise CannotCarryError("the job names no TrainingImage that the flag's could replace")
    return {"AlgorithmSpecification": {**algorithm, "TrainingImage": overrides["image"]}}


def _machines(job: Job, overrides: Mapping[str, Any]) -> Job:
    cluster = job.get("ResourceConfig") or {}
    changes = machines(overrides, cluster.get("InstanceGroups"))
    fields = {"instance_type": "InstanceType", "instance_count": "InstanceCount"}
    named = {fields[key]: value for key, value in changes.items()}
    return {"ResourceConfig": {**cluster, **named}} if named else {}


def _decoded(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _image(job: Job) -> Any:
    return (job.get("AlgorithmSpecification") or {}).get("TrainingImage")


REQUEST = Form(_overridden, image=_image, tags="Tags", environment="Environment")
_VALUES = Form(_followed, image=lambda _: None)
