"""A training job as Search returns it, of a workload's run.

What each style writes into a request follows the sources that ``names.py`` cites: the SDK's second
version encodes hyperparameters as JSON and names program and bundle among them; its third gives
code and drivers as channels and starts them by an entry point; Pipelines takes the name of the job
away and tags the job with its execution.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from benchmarks.discover.workloads import ACCOUNT, HAND, PIPELINES, V2, V3, Workload

Document = dict[str, Any]
_REGISTRY = "763104351884.dkr.ecr"
_TAGS = {
    "pytorch-training": ("2.6.0-gpu-py312", "2.7.1-gpu-py312"),
    "huggingface-pytorch-training": ("2.1.0-transformers4.36.0-gpu-py310",) * 2,
    "tensorflow-training": ("2.18.0-gpu-py310", "2.19.0-gpu-py312"),
}
_V3_START = "/opt/ml/input/data/sm_drivers/sm_train.sh"


class Outcome(StrEnum):
    """How a job ends, or what started it if it belongs to no workload."""

    COMPLETED, FAILED, STOPPED = "Completed", "Failed", "Stopped"
    NO_CAPACITY = "no capacity"
    TUNED, AUTOML, OWN = "tuned", "automl", "own"


class Run(NamedTuple):
    """One job of a workload: when it was created, which it is of its runs, and its base name."""

    at: float
    number: int
    outcome: Outcome
    base: str
    late: bool


def dollars(record: Mapping[str, Any], usd_per_hour: Mapping[str, float]) -> float:
    """What the job was billed, 0 where it never ran."""
    resources = record["ResourceConfig"]
    groups = resources.get("InstanceGroups") or [resources]
    hours = record.get("BillableTimeInSeconds", 0) / 3600
    return sum(
        hours * group["InstanceCount"] * usd_per_hour[group["InstanceType"]] for group in groups
    )


def record(workload: Workload, run: Run, name: str, draw: random.Random, now: float) -> Document:
    """The job's record, as of now (epoch seconds)."""
    arn = f"arn:aws:sagemaker:{workload.region}:{ACCOUNT}:training-job/{name}"
    document: Document = {
        "TrainingJobName": name,
        "TrainingJobArn": arn,
        "HyperParameters": _hyperparameters(workload, run, name),
        "AlgorithmSpecification": _algorithm(workload, run),
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/sagemaker-{workload.owner or 'default'}",
        "InputDataConfig": _channels(workload, run, name),
        "OutputDataConfig": {"S3OutputPath": f"s3://ml-models-{workload.region}/{workload.stem}"},
        "ResourceConfig": _resources(workload),
        "StoppingCondition": {"MaxRuntimeInSeconds": 432_000},
        "EnableNetworkIsolation": False,
        "EnableInterContainerTrafficEncryption": False,
        "EnableManagedSpotTraining": workload.spot,
        "Environment": {"STAGE": "prod"} if workload.style in (V3, HAND) else {},
        "Tags": _tags(workload, run, name),
        **_course(workload, run, name, draw, now),
    }
    if workload.spot:
        document["StoppingCondition"]["MaxWaitTimeInSeconds"] = 864_000
        document["CheckpointConfig"] = {"S3Uri": f"s3://ml-checkpoints/{workload.base}"}
    if workload.style == PIPELINES and run.outcome not in (Outcome.TUNED, Outcome.AUTOML):
        document["ExperimentConfig"] = {
            "ExperimentName": _pipeline(workload, run),
            "TrialName": name.split("-")[1],
        }
    return {**document, **_origin(workload, run, name)}


def _origin(workload: Workload, run: Run, name: str) -> Document:
    prefix = f"arn:aws:sagemaker:{workload.region}:{ACCOUNT}"
    tuning = f"{prefix}:hyper-parameter-tuning-job/{name[:-13]}"
    if run.outcome is Outcome.TUNED:
        return {"TuningJobArn": tuning}
    if run.outcome is Outcome.AUTOML:
        automl = f"{prefix}:automl-job/{run.base[:28]}"
        return {"TuningJobArn": tuning, "AutoMLJobArn": automl}
    return {}


def _digest(*words: object) -> str:
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()


def _pipeline(workload: Workload, run: Run) -> str:
    return run.base if workload.renamed and run.late else workload.stem


def _hyperparameters(workload: Workload, run: Run, name: str) -> dict[str, str]:
    values: Document = dict(workload.hyperparameters)
    if workload.swept:
        text = workload.swept[run.number % len(workload.swept)]
        values[workload.sweep] = json.loads(text.replace("0-", "0.", 1))
    if workload.style == V3:
        return {key: _plain(value) for key, value in values.items()}
    if workload.program is not None:
        values["sagemaker_program"] = workload.program
        values["sagemaker_submit_directory"] = _bundle(workload, run, name)
    if workload.style == HAND:
        return {key: _plain(value) for key, value in values.items()}
    values |= {"sagemaker_container_log_level": 20, "sagemaker_region": workload.region}
    if workload.style == V2:
        values["sagemaker_job_name"] = name
    return {key: json.dumps(value) for key, value in values.items()}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _bundle(workload: Workload, run: Run, name: str) -> str:
    """Where the code lies: of each job anew, or by a digest that changes with the code."""
    bucket = f"s3://sagemaker-{workload.region}-{ACCOUNT}"
    if workload.style == V2:
        return f"{bucket}/{name}/source/sourcedir.tar.gz"
    digest = _digest(workload.stem, run.number // 5)
    if workload.style == PIPELINES:
        return f"{bucket}/{_pipeline(workload, run)}/code/{digest}/sourcedir.tar.gz"
    return f"s3://ml-code/{workload.stem}/{digest[:8]}/sourcedir.tar.gz"


def _algorithm(workload: Workload, run: Run) -> Document:
    algorithm: Document = {
        "TrainingImage": _image(workload, run),
        "TrainingInputMode": "File",
        "EnableSageMakerMetricsTimeSeries": False,
        "MetricDefinitions": [{"Name": workload.metric, "Regex": f"{workload.metric}=([0-9.]+)"}],
    }
    if workload.style == V3:
        start = f"chmod +x {_V3_START} && {_V3_START}"
        algorithm |= {"ContainerEntrypoint": ["/bin/bash"], "ContainerArguments": ["-c", start]}
    return algorithm


def _image(workload: Workload, run: Run) -> str:
    if not workload.own_registry:
        tags = _TAGS[workload.repository]
        registry = f"{_REGISTRY}.{workload.region}.amazonaws.com"
        return f"{registry}/{workload.repository}:{tags[run.late]}"
    place = f"{ACCOUNT}.dkr.ecr.{workload.region}.amazonaws.com/{workload.repository}"
    digest = _digest(workload.truth, run.number)
    if workload.image == "digest":
        return f"{place}@sha256:{digest}"
    return f"{place}:{digest[:7] if workload.image == 'tag' else '1.4'}"


def _channels(workload: Workload, run: Run, name: str) -> list[Document]:
    day = datetime.fromtimestamp(run.at, UTC).strftime("%Y-%m-%d")
    data = f"s3://ml-data/{workload.stem}/dt={day}/"
    places = {"training": data, "validation": f"{data}validation/"}
    if workload.style == V3:
        code = f"s3://sagemaker-{workload.region}-{ACCOUNT}/{run.base}/{name}/input"
        places |= {"code": f"{code}/code", "sm_drivers": f"{code}/sm_drivers"}
    return [{"ChannelName": channel, **_source(uri)} for channel, uri in places.items()]


def _source(uri: str) -> Document:
    place = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"DataSource": {"S3DataSource": place}, "CompressionType": "None"}


def _resources(workload: Workload) -> Document:
    resources: Document = {"VolumeSizeInGB": 100}
    machine = {"InstanceType": workload.instance, "InstanceCount": workload.count}
    if workload.mixed_instances:
        readers = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 2}
        resources["InstanceGroups"] = [
            {**machine, "InstanceGroupName": "train"},
            {**readers, "InstanceGroupName": "read"},
        ]
        return resources
    if workload.warm:
        resources["KeepAlivePeriodInSeconds"] = 1800
    return {**resources, **machine}


def _tags(workload: Workload, run: Run, name: str) -> list[Document]:
    tags = {workload.owner_tag: workload.owner} if workload.owner else {}
    if run.outcome is Outcome.OWN:
        tags |= {"compilegate:workload": run.base[:30], "compilegate:stage": "quality"}
    elif run.outcome not in (Outcome.TUNED, Outcome.AUTOML) and workload.style == PIPELINES:
        pipeline = f"pipeline/{_pipeline(workload, run)}/execution/{name.split('-')[1]}"
        arn = f"arn:aws:sagemaker:{workload.region}:{ACCOUNT}:{pipeline}"
        tags["sagemaker:pipeline-execution-arn"] = arn
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _course(workload: Workload, run: Run, name: str, draw: random.Random, now: float) -> Document:
    """Status and times: what has ended by now is billed, spot without its interruptions."""
    created = datetime.fromtimestamp(run.at, UTC)
    if run.outcome is Outcome.NO_CAPACITY:
        reason = f"CapacityError: Unable to provision requested {workload.instance} compute."
        ended = _later(created, 900)
        return _ended(created, ended, "Failed", [("Starting", 900)]) | {"FailureReason": reason}
    waited, seconds = draw.uniform(60, 400), 3600 * workload.hours * draw.lognormvariate(0, 0.06)
    if run.outcome in (Outcome.FAILED, Outcome.STOPPED):
        seconds *= draw.random()
    stages = _stages(workload, waited, max(seconds, 30.0), draw)
    total = sum(length for _, length in stages)
    if run.at + total > now:
        return _running(created, waited)
    status = run.outcome.value if run.outcome in _ENDS else "Completed"
    idle = sum(length for stage, length in stages[1:] if stage in ("Interrupted", "Starting"))
    training = int(total - waited) + 1
    course = _ended(created, _later(created, total), status, stages) | {
        "TrainingStartTime": _later(created, waited),
        "TrainingTimeInSeconds": training,
        "BillableTimeInSeconds": max(training - int(idle), 1),
    }
    if status == "Failed":
        course["FailureReason"] = "AlgorithmError: ExecuteUserScriptError: ExitCode 1"
    if status == "Completed":
        course |= _results(workload, name, course["TrainingEndTime"], draw)
    return course


_ENDS = (Outcome.COMPLETED, Outcome.FAILED, Outcome.STOPPED)


def _stages(
    workload: Workload, waited: float, seconds: float, draw: random.Random
) -> list[tuple[str, float]]:
    """Secondary statuses in order, with how long each lasted (s)."""
    stages = [("Starting", waited), ("Downloading", draw.uniform(20, 200))]
    breaks = draw.choice((0, 0, 1, 3)) if workload.spot else 0
    for _ in range(breaks):
        stages += [("Training", seconds / (breaks + 1)), ("Interrupted", draw.uniform(60, 5000))]
        stages.append(("Starting", draw.uniform(60, 300)))
    return [*stages, ("Training", seconds / (breaks + 1)), ("Uploading", 15.0)]


def _running(created: datetime, waited: float) -> Document:
    stages = [{"Status": "Starting", "StartTime": created}]
    return {
        "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training", "CreationTime": created,
        "TrainingStartTime": _later(created, waited), "LastModifiedTime": created,
        "SecondaryStatusTransitions": stages,
    }  # fmt: skip


def _ended(
    created: datetime, ended: datetime, status: str, stages: list[tuple[str, float]]
) -> Document:
    at, shown = created, []
    for stage, length in stages:
        shown.append({"Status": stage, "StartTime": at, "EndTime": _later(at, length)})
        at = _later(at, length)
    shown.append({"Status": status, "StartTime": ended, "EndTime": ended})
    return {
        "TrainingJobStatus": status, "SecondaryStatus": status, "CreationTime": created,
        "TrainingEndTime": ended, "LastModifiedTime": ended, "SecondaryStatusTransitions": shown,
    }  # fmt: skip


def _results(workload: Workload, name: str, ended: datetime, draw: random.Random) -> Document:
    value = round(0.8 + draw.gauss(0, 0.01), 4)
    results: Document = {
        "FinalMetricDataList": [
            {"MetricName": workload.metric, "Value": value, "Timestamp": ended},
        ],
        "ModelArtifacts": {
            "S3ModelArtifacts": f"s3://ml-models-{workload.region}/{name}/output/model.tar.gz",
        },
    }  # fmt: skip
    if workload.warm and not workload.mixed_instances:
        idle = draw.randrange(1, 1800)
        pool = {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": idle}
        results["WarmPoolStatus"] = pool
    return results


def _later(at: datetime, seconds: float) -> datetime:
    return datetime.fromtimestamp(at.timestamp() + seconds, UTC)
