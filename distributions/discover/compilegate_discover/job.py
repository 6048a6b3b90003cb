"""A training job as the account describes it, without what differs from run to run.

Shapes: botocore's models of Search (``TrainingJob``) and DescribeTrainingJob, which name the same
fields. A value of another kind than the model's is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compilegate.domain.naming import JOB_PREFIX, TAG_STAGE, TAG_WORKLOAD

Record = Mapping[str, Any]
Pairs = tuple[tuple[str, str], ...]
# Set by a service that makes many jobs of one task; the task is its own.
MADE_BY_OTHERS = ("TuningJobArn", "AutoMLJobArn", "LabelingJobArn")
# Channels of the SDK's version 3 that hold code.
CODE, DRIVER = "code", "sm_drivers"
CODE_CHANNELS = (CODE, DRIVER, "sm_code", "recipe")
# What the toolkit reads the name of the script from.
PROGRAM_SETTING, PROGRAM_VARIABLE = "sagemaker_program", "SAGEMAKER_PROGRAM"
SOURCE_SETTING, SOURCE_VARIABLE = "sagemaker_submit_directory", "SAGEMAKER_SUBMIT_DIRECTORY"
OWN_SETTINGS = "sagemaker_"
# What the SDK's estimators switch on for a way to start processes (facts/request_keys.json).
LAUNCHERS = {
    "sagemaker_pytorch_xla_multi_worker_enabled": "pytorchxla",
    "sagemaker_mpi_enabled": "smp",
    "sagemaker_torch_distributed_enabled": "torch_distributed",
    "sagemaker_pytorch_ddp_enabled": "pytorchddp",
    "sagemaker_distributed_dataparallel_enabled": "smddp",
}
MANAGED_COMPILER = "sagemaker_training_compiler_enabled"
_SCRIPT = re.compile(r"[^\s=]+\.(py|sh|ipynb|R|r|jl)")


@dataclass(frozen=True, slots=True)
class Setup:
    """What the jobs of a workload have in common; jobs with equal setups share one object.

    ``repository`` is the image's without region and tag; ``settings`` are the script's
    hyperparameters as text, ``channels`` the URIs of the data. ``launcher`` is a distribution of
    the workload file, empty where the job names none.
    """

    region: str
    program: str
    repository: str
    image: str
    launcher: str
    managed_compiler: bool
    settings: Pairs
    environment: Pairs
    channels: Pairs
    output: str
    role: str
    tags: Pairs
    volume_gb: int | None
    max_runtime: float | None
    max_wait: float | None

    def setting(self, *names: str) -> tuple[str, str] | None:
        """Name and value of the first of these hyperparameters that is set."""
        own = {name.lower().replace("-", "_"): (name, value) for name, value in self.settings}
        return next((own[name] for name in names if name in own), None)


@dataclass(frozen=True, slots=True)
class Job:
    """One training job; times are epochs, lengths seconds, None where the record has none.

    ``billable`` is of one instance. ``retained`` is what its warm pool was billed for after it.
    ``source`` is the URI of its code, ``drivers`` that of what the SDK's version 3 starts it with.
    """

    name: str
    status: str
    created: float
    started: float | None
    ended: float | None
    seconds: float | None
    billable: float | None
    retained: float
    instances: tuple[tuple[str, int], ...]
    spot: bool
    source: str
    drivers: str
    metrics: tuple[tuple[str, float], ...]
    setup: Setup

    @property
    def completed(self) -> bool:
        """Whether it ended as a whole run."""
        return self.status == "Completed"


class Reader:
    """Makes jobs of records, and one object of equal setups: an account has 100 times more jobs."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._setups: dict[Setup, Setup] = {}
        self._values: dict[Any, Any] = {}

    def job(self, record: Record) -> Job | None:
        """The job; None where it is left out, or has no name or no time."""
        name, created = record.get("TrainingJobName"), record.get("CreationTime")
        tags = self._pairs(
            (_text(one.get("Key")), one.get("Value")) for one in _maps(record, "Tags")
        )
        if not isinstance(name, str) or not isinstance(created, datetime) or is_other(record, tags):
            return None
        kept = {_text(key): value for key, value in _map(record, "HyperParameters").items()}
        environment = self._pairs(_map(record, "Environment").items())
        resources = _map(record, "ResourceConfig")
        setup = self._setup(record, kept, environment, tags, resources)
        groups = _maps(resources, "InstanceGroups") or [resources]
        instances = tuple(
            (_text(one.get("InstanceType")), int(one.get("InstanceCount") or 1)) for one in groups
        )
        metrics = tuple(
            (self._one(_text(one.get("MetricName"))), float(one["Value"]))
            for one in _maps(record, "FinalMetricDataList")
            if _number(one.get("Value")) is not None
        )
        places = dict(_places(record))
        # In network isolation that is a path in the container, to which the channel is copied.
        named = _unquoted(kept.get(SOURCE_SETTING)) or dict(environment).get(SOURCE_VARIABLE, "")
        retained = _map(record, "WarmPoolStatus").get("ResourceRetainedBillableTimeInSeconds")
        return Job(
            name=name,
            status=self._one(_text(record.get("TrainingJobStatus"))),
            created=created.timestamp(),
            started=_epoch(record.get("TrainingStartTime")),
            ended=_epoch(record.get("TrainingEndTime")),
            seconds=_number(record.get("TrainingTimeInSeconds")),
            billable=_number(record.get("BillableTimeInSeconds")),
            retained=_number(retained) or 0.0,
            instances=self._one(instances),
            spot=record.get("EnableManagedSpotTraining") is True,
            source=named if named.startswith("s3://") else places.get(CODE, named),
            drivers=places.get(DRIVER, ""),
            metrics=metrics,
            setup=setup,
        )

    def _one(self, value: Any) -> Any:
        """The first value that is equal, so that equal ones take the place of one."""
        return self._values.setdefault(value, value)

    def _pairs(self, items: Iterable[tuple[str, Any]]) -> Pairs:
        pairs = sorted((self._one(key), self._one(_text(value))) for key, value in items)
        return self._one(tuple(pairs))  # type: ignore[no-any-return]

    def _setup(
        self, record: Record, kept: Record, environment: Pairs, tags: Pairs, resources: Record
    ) -> Setup:
        image = _text(_map(record, "AlgorithmSpecification").get("TrainingImage"))
        limits = _map(record, "StoppingCondition")
        settings = self._pairs(
            (key, _unquoted(value))
            for key, value in kept.items()
            if not key.startswith(OWN_SETTINGS)
        )
        setup = Setup(
            region=self._region,
            program=self._one(_program(record, kept, environment)),
            repository=self._one(repository_of(image)),
            image=self._one(image),
            launcher=next((name for key, name in LAUNCHERS.items() if _is_on(kept.get(key))), ""),
            managed_compiler=_is_on(kept.get(MANAGED_COMPILER)),
            settings=settings,
            environment=environment,
            channels=self._pairs(_channels(record)),
            output=self._one(_text(_map(record, "OutputDataConfig").get("S3OutputPath"))),
            role=self._one(_text(record.get("RoleArn"))),
            tags=tags,
            volume_gb=resources.get("VolumeSizeInGB"),
            max_runtime=_number(limits.get("MaxRuntimeInSeconds")),
            max_wait=_number(limits.get("MaxWaitTimeInSeconds")),
        )
        return self._setups.setdefault(setup, setup)


def is_other(record: Record, tags: Pairs) -> bool:
    """Whether a service made the job in search of settings, or Compilegate for a trial."""
    names = {name for name, _ in tags}
    own = str(record.get("TrainingJobName")).startswith(f"{JOB_PREFIX}-")
    ours = own and (not tags or bool(names & {TAG_WORKLOAD, TAG_STAGE}))
    return ours or any(record.get(key) for key in MADE_BY_OTHERS)


def repository_of(image: str) -> str:
    """``123456789012/team/train``: account and repository of an image."""
    place, _, path = image.partition("/")
    bare = path.partition("@")[0].rpartition(":")[0] or path.partition("@")[0]
    return f"{place.partition('.')[0]}/{bare}" if bare else image


def _program(record: Record, kept: Record, environment: Pairs) -> str:
    """The script; else the container's entry point or the algorithm, empty where none is named."""
    named = _unquoted(kept.get(PROGRAM_SETTING)) or dict(environment).get(PROGRAM_VARIABLE, "")
    if named:
        return named
    algorithm = _map(record, "AlgorithmSpecification")
    words = [
        word
        for key in ("ContainerEntrypoint", "ContainerArguments")
        for word in algorithm.get(key) or ()
        if isinstance(word, str)
    ]
    if any(DRIVER in word for word in words):
        return ""  # the SDK's own driver, whatever it starts
    script = next((word for word in words if _SCRIPT.fullmatch(word)), "")
    return script or " ".join(words[:2]) or _text(algorithm.get("AlgorithmName"))


def _places(record: Record) -> Iterator[tuple[str, str]]:
    """Each channel with where it is from."""
    for channel in _maps(record, "InputDataConfig"):
        name, source = _text(channel.get("ChannelName")), _map(channel, "DataSource")
        files = _map(source, "FileSystemDataSource")
        uri = _text(_map(source, "S3DataSource").get("S3Uri"))
        yield name, uri or f"{files.get('FileSystemId', '')}{files.get('DirectoryPath', '')}"


def _channels(record: Record) -> Iterator[tuple[str, str]]:
    return ((name, uri) for name, uri in _places(record) if name not in CODE_CHANNELS)


def _is_on(value: Any) -> bool:
    return _unquoted(value).lower() == "true"


def _unquoted(value: Any) -> str:
    """A hyperparameter's text, which the SDK writes as JSON."""
    text = _text(value)
    if not text.startswith('"'):
        return text
    try:
        return _text(json.loads(text))
    except ValueError:
        return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < float("inf") else None


def _epoch(value: Any) -> float | None:
    return value.timestamp() if isinstance(value, datetime) else None


def _map(record: Record, key: str) -> Record:
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def _maps(record: Record, key: str) -> list[Record]:
    value = record.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
