"""Rules about a CreateTrainingJob request that the service model does not state.

They are the ones the service is documented to enforce, and the inputs that this
backend cannot provide, refused early with words that say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlparse

from compilegate.localcloud.emulator.sagemaker.errors import ApiError

Request = dict[str, Any]


def check_semantics(request: Request) -> None:
    """Refuse what the service would refuse beyond its model.

    Raises ApiError(ValidationException) that names the first broken rule.
    """
    for rule in _RULES:
        for problem in rule(request):
            raise ApiError("ValidationException", problem)


def _algorithm(request: Request) -> Iterator[str]:
    algorithm = request["AlgorithmSpecification"]
    given = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(given) != 1:
        yield "You must specify exactly one of TrainingImage and AlgorithmName."
    elif given == ["AlgorithmName"]:
        yield "The local cloud runs script-mode images only; AlgorithmName is not supported."


def _resources(request: Request) -> Iterator[str]:
    resources = request.get("ResourceConfig") or {}
    if not resources.get("InstanceType") and not resources.get("InstanceGroups"):
        yield "ResourceConfig must name InstanceType or InstanceGroups."
    if resources.get("InstanceType") and not resources.get("InstanceCount"):
        yield "ResourceConfig.InstanceCount is required with InstanceType."


def _locations(request: Request) -> Iterator[str]:
    places = {
        "outputDataConfig.s3OutputPath": (request.get("OutputDataConfig") or {}).get(
            "S3OutputPath"
        ),
        "checkpointConfig.s3Uri": (request.get("CheckpointConfig") or {}).get("S3Uri"),
    }
    if not places["outputDataConfig.s3OutputPath"]:
        yield "OutputDataConfig.S3OutputPath is required."
    for field, place in places.items():
        if place is not None and urlparse(place).scheme not in ("s3", "https"):
            yield f"The S3 URI in {field} must begin with s3://, got {place!r}."


def _channels(request: Request) -> Iterator[str]:
    channels = request.get("InputDataConfig") or []
    names = [channel["ChannelName"] for channel in channels]
    if len(set(names)) != len(names):
        yield f"Channel names must be unique, got {names}."
    for channel in channels:
        source = channel["DataSource"].get("S3DataSource")
        if source is None or source["S3DataType"] != "S3Prefix":
            yield f"The local cloud reads S3Prefix channels only; {channel['ChannelName']} is not."
        mode = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
        if mode == "Pipe":
            yield "The local cloud does not provide input mode Pipe; use File or FastFile."


def _spot(request: Request) -> Iterator[str]:
    stopping = request.get("StoppingCondition") or {}
    wait, runtime = stopping.get("MaxWaitTimeInSeconds"), stopping.get("MaxRuntimeInSeconds")
    spot = bool(request.get("EnableManagedSpotTraining"))
    if spot and wait is None:
        yield "MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is true."
    if not spot and wait is not None:
        yield "MaxWaitTimeInSeconds is only allowed when EnableManagedSpotTraining is true."
    if wait is not None and runtime is not None and wait < runtime:
        yield "MaxWaitTimeInSeconds must be at least MaxRuntimeInSeconds."


def _tags(request: Request) -> Iterator[str]:
    for tag in request.get("Tags") or []:
        if tag["Key"].lower().startswith("aws:"):
            yield f"Tag key {tag['Key']!r} uses the reserved prefix aws:."


_RULES: tuple[Callable[[Request], Iterator[str]], ...] = (
    _algorithm,
    _resources,
    _locations,
    _channels,
    _spot,
    _tags,
)
