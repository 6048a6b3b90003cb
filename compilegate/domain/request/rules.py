"""Rules about a CreateTrainingJob request that the service's model does not state.

They are the ones that the service is documented to enforce (API reference of CreateTrainingJob,
StoppingCondition and Tag).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compilegate.domain.service_limits import Violation

Request = Mapping[str, Any]


def broken_rules(request: Request) -> Iterator[Violation]:
    """Every rule that the request breaks; it is of the model's shape."""
    for rule in _RULES:
        yield from rule(request)


def _algorithm(request: Request) -> Iterator[Violation]:
    algorithm = request["AlgorithmSpecification"]
    given = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(given) != 1:
        yield Violation("AlgorithmSpecification", given, "needs TrainingImage or AlgorithmName")


def _cluster(request: Request) -> Iterator[Violation]:
    cluster = request["ResourceConfig"]
    if cluster.get("InstanceGroups"):
        return
    if not cluster.get("InstanceType") or not cluster.get("InstanceCount"):
        yield Violation("ResourceConfig", cluster, "needs InstanceType and InstanceCount")


def _channels(request: Request) -> Iterator[Violation]:
    names = [channel["ChannelName"] for channel in request.get("InputDataConfig", ())]
    if len(set(names)) != len(names):
        yield Violation("InputDataConfig", names, "must have channels of different names")


def _spot(request: Request) -> Iterator[Violation]:
    limits = request["StoppingCondition"]
    wait, runtime = limits.get("MaxWaitTimeInSeconds"), limits.get("MaxRuntimeInSeconds")
    spot = bool(request.get("EnableManagedSpotTraining"))
    path = "StoppingCondition.MaxWaitTimeInSeconds"
    if spot and wait is None:
        yield Violation(path, None, "is missing, a spot job needs it")
    if not spot and wait is not None:
        yield Violation(path, wait, "is for spot jobs only")
    if wait is not None and runtime is not None and wait < runtime:
        yield Violation(path, wait, f"must be at least MaxRuntimeInSeconds ({runtime})")


def _tags(request: Request) -> Iterator[Violation]:
    keys = [tag["Key"] for tag in request.get("Tags", ())]
    for key in keys:
        if key.lower().startswith("aws:"):
            yield Violation("Tags", key, "must not begin with aws:, which is reserved")
    if len(set(keys)) != len(keys):
        yield Violation("Tags", keys, "must have different keys")


_RULES: tuple[Callable[[Request], Iterator[Violation]], ...] = (
    _algorithm,
    _cluster,
    _channels,
    _spot,
    _tags,
)
