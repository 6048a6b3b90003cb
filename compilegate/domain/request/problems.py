"""What the service would refuse a request for, in the words of the workload file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request.rules import broken_rules
from compilegate.domain.service_limits import Violation, violations

# Where a request's field comes from, and how to mend it; the first prefix that fits holds.
_FIELDS: Mapping[str, tuple[str, str]] = {
    "TrainingJobName": ("name", "choose a shorter name"),
    "RoleArn": ("the deployment's training role", "deploy the stack again"),
    "AlgorithmSpecification.MetricDefinitions": ("quality.metric", "choose a shorter name"),
    "AlgorithmSpecification.TrainingImage": ("facts.images", "give the image's full URI"),
    "HyperParameters.arm_": (
        "training.hyperparameters",
        "shorten or leave out values; a speed job carries all of an arm's in one",
    ),
    "HyperParameters": ("training.hyperparameters", "shorten, rename or leave out values"),
    "Environment": ("training.environment", "shorten, rename or leave out values"),
    "InputDataConfig": ("training.inputs", "change the channel's name or URI"),
    "Tags": ("tags or owner", "use letters, digits, spaces and _.:/=+-@ in at most 43 tags"),
    "ResourceConfig.InstanceType": ("training.instance_type", "name a type that SageMaker has"),
    "ResourceConfig": ("training", "correct instance type, count or volume_gb"),
    "StoppingCondition": ("training.max_runtime_hours or max_wait_hours", "correct the hours"),
    "VpcConfig": ("the vpc of cdk.json", "correct subnets and security groups"),
    "OutputDataConfig": ("the deployment's bucket and key", "deploy the stack again"),
    "CheckpointConfig": ("the deployment's bucket", "deploy the stack again"),
}
# The state machine appends it to the name; one digit is the longest.
RETRY_SUFFIX = "-r9"
_SHOWN = 80


def problems(request: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[InvalidInputError]:
    """Everything that the service would refuse; ``model`` is facts/create_training_job.json."""
    named = {**request, "TrainingJobName": f"{request['TrainingJobName']}{RETRY_SUFFIX}"}
    found = list(violations(model["shapes"], model["input"], named))
    # The rules read fields that the model requires.
    for violation in found or broken_rules(named):
        yield problem_of(violation)


def problem_of(violation: Violation) -> InvalidInputError:
    """The violation as an error that names the field of the workload file, and a fix."""
    field, fix = next(
        (told for prefix, told in _FIELDS.items() if violation.path.startswith(prefix)),
        ("the workload", "change what the message names"),
    )
    value = violation.value if len(repr(violation.value)) <= _SHOWN else None
    return InvalidInputError(
        f"{violation.path} of the job's request {violation.rule}", field=field, value=value, fix=fix
    )
