"""Why SageMaker or Step Functions would reject a request.

The service's model states most rules (``service_limits``); ``broken_rules`` are those that its
documentation adds (API reference of CreateTrainingJob, StoppingCondition and Tag).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.service_limits import Violation, violations

Request = Mapping[str, Any]
# Where a request's field comes from, and the fix; the first prefix that fits holds.
_FIELDS: Mapping[str, tuple[str, str]] = {
    "TrainingJobName": ("name", "choose a shorter name"),
    "RoleArn": ("the workload's role", "deploy the stack again"),
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
NOT_PASSED_ON = "is not a field that Step Functions passes on to SageMaker"


@dataclass(frozen=True)
class RequestLimits:
    """What SageMaker takes, and the fields that Step Functions passes on to it.

    ``model`` is facts/create_training_job.json, ``passed_on`` facts/step_functions_fields.json.
    """

    model: Mapping[str, Any]
    passed_on: Collection[str]

    def check(self, request: Request) -> None:
        """Raises InvalidInputError with the first thing that the service would refuse.

        SageMaker's own limits come first, then the fields that Step Functions does not pass on.
        """
        for problem in problems(request, self.model):
            raise problem
        for violation in unsupported_fields(self.passed_on, request):
            raise problem_of(violation)


def problems(request: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[InvalidInputError]:
    """Everything that the service would refuse; ``model`` is facts/create_training_job.json."""
    named = {**request, "TrainingJobName": f"{request['TrainingJobName']}{RETRY_SUFFIX}"}
    broken = list(violations(model["shapes"], model["input"], named))
    # The rules read fields that the model requires.
    for violation in broken or broken_rules(named):
        yield problem_of(violation)


def problem_of(violation: Violation) -> InvalidInputError:
    """The violation as an error that names the field of the workload file, and a fix."""
    field, fix = next(
        (origin for prefix, origin in _FIELDS.items() if violation.path.startswith(prefix)),
        ("the workload", "change what the message names"),
    )
    value = violation.value if len(repr(violation.value)) <= _SHOWN else None
    return InvalidInputError(
        f"{violation.path} of the job's request {violation.rule}", field=field, value=value, fix=fix
    )


def broken_rules(request: Request) -> Iterator[Violation]:
    """Every rule across fields that the request breaks; it is of the model's shape."""
    algorithm, cluster = request["AlgorithmSpecification"], request["ResourceConfig"]
    named = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(named) != 1:
        yield Violation("AlgorithmSpecification", named, "needs TrainingImage or AlgorithmName")
    single = cluster.get("InstanceType") and cluster.get("InstanceCount")
    if not single and not cluster.get("InstanceGroups"):
        yield Violation("ResourceConfig", cluster, "needs InstanceType and InstanceCount")
    names = [channel["ChannelName"] for channel in request.get("InputDataConfig", ())]
    if len(set(names)) != len(names):
        yield Violation("InputDataConfig", names, "must have channels of different names")
    yield from _waiting(request)
    keys = [tag["Key"] for tag in request.get("Tags", ())]
    for key in keys:
        if key.lower().startswith("aws:"):
            yield Violation("Tags", key, "must not begin with aws:, which is reserved")
    if len(set(keys)) != len(keys):
        yield Violation("Tags", keys, "must have different keys")


def _waiting(request: Request) -> Iterator[Violation]:
    limits, path = request["StoppingCondition"], "StoppingCondition.MaxWaitTimeInSeconds"
    wait, runtime = limits.get("MaxWaitTimeInSeconds"), limits.get("MaxRuntimeInSeconds")
    spot = bool(request.get("EnableManagedSpotTraining"))
    if spot and wait is None:
        yield Violation(path, None, "is missing, a spot job needs it")
    if not spot and wait is not None:
        yield Violation(path, wait, "is for spot jobs only")
    if wait is not None and runtime is not None and wait < runtime:
        yield Violation(path, wait, f"must be at least MaxRuntimeInSeconds ({runtime})")


def unsupported_fields(supported: Collection[str], request: Mapping[str, Any]) -> list[Violation]:
    """Fields of ``request`` that Step Functions' optimised integration does not pass on.

    ``supported`` are paths to leaves (``facts/step_functions_fields.json``), through lists as if
    each held one entry; below a leaf every name is allowed. Any other field ends the execution as
    ``States.Runtime``, which no Catch sees, and only when the state runs.
    """
    ways = {leaf[:end] for leaf in supported for end, c in enumerate(leaf) if c == "."}
    return list(_unsupported(frozenset(supported), frozenset(ways), request, ""))


def _unsupported(
    leaves: frozenset[str], ways: frozenset[str], value: object, path: str
) -> Iterator[Violation]:
    if path in leaves:
        return
    if path and path not in ways:
        yield Violation(path, value, NOT_PASSED_ON)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _unsupported(leaves, ways, item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _unsupported(leaves, ways, item, path)
