"""What texts and names of a workload file must look like, and which the trial needs for itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from compilegate.domain.argument_text import json_object
from compilegate.domain.expected import Form, Problem

# What a trial passes to every script itself, and where a workload file sets it.
OWN_HYPERPARAMETERS = {
    "arm": "remove it: each arm gets its own name",
    "compiler": "write compiler on a candidate",
    "compile_mode": "write compile_mode on a candidate",
    "precision": "write training.precision, or precision on a candidate",
    "batch_size": "write training.batch_size, or batch_size on a candidate",
    "learning_rate": "write training.learning_rate; on a candidate learning_rate_scaling",
    "seed": "remove it: each run gets its own, the same in all arms",
    "replicate": "remove it: each run gets its own",
    "max_steps": "name a whole run's length otherwise: full_run_steps with launch.py, steps with "
    "the ready-made scripts",
    "training_script": "write training.entry_point",
}
# The settings of SageMaker's model-parallel library, JSON text in a workload file. The library
# reads them as SM_HP_MP_PARAMETERS, so they are the whole job's.
PARTITIONING = "mp_parameters"
OWN_ENVIRONMENT = ("TORCHINDUCTOR_CACHE_DIR", "GPU_NUM_DEVICES")
# The trial's own; and what the training toolkit fills in for the script.
OWN_PREFIXES = ("COMPILEGATE_", "SM_", "SAGEMAKER_")
# AWS reserves the first; the second is what the roles of a deployment are limited to.
TAG_PREFIXES = ("aws:", "compilegate:")
# How a line of progress starts. Under mpirun's ``--tag-output`` the process stands before it:
# ``[1,0]<stdout>:`` as Open MPI writes it, ``[1,mpirank:0,algo-1]<stdout>:`` as the container
# toolkit rewrites that (process.py of sagemaker-training 5.1.1); Open MPI 5 adds a space.
PROGRESS_LINE = r"^(?:\[[^\]]*\]<stdout>: ?)?compilegate "
# How SageMaker finds a metric in what a job prints; its name, escaped, goes into the braces.
METRIC_LINE = rf"{PROGRESS_LINE}.*\b{{}}=([-+0-9.eE]+|nan|inf)"

_HYPERPARAMETER = re.compile(r"[A-Za-z0-9_][^\s=]*")
_CHANNEL_IN_ENVIRONMENT = re.compile(r"[^A-Za-z0-9_]")
_S3 = "s3://"
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_MOST_USD = 1e5
# Relative, and never out of the folder that it starts from.
_INNER = re.compile(r"(?!/)(?!(.*/)?\.\.(/|$))[^\\]+")
_INSTANCE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")

NAME = Form(
    re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"),
    "has characters that are not allowed in a name",
    "use 1 to 32 lower-case letters, digits and inner hyphens, such as bert-docs",
)
VERSION = Form(
    re.compile(r"\d+(\.\d+)*[A-Za-z0-9.+_-]*"), "is not a version", 'write it like "2.1.0"', 32
)
PYTHON = Form(
    re.compile(r"py[23]\d{1,2}"), "is not a Python version as images name it",
    "write it like py310",
)  # fmt: skip
SOURCE_DIR = Form(
    _INNER, "must be a folder inside the project",
    "write it relative to the workload file's folder or the one above it",
)  # fmt: skip
ENTRY_POINT = Form(
    _INNER, "lies outside the source folder", "write it relative to the source folder, without .."
)
INSTANCE = Form(_INSTANCE, "is not a SageMaker instance type", "write it like ml.g5.48xlarge")
FALLBACK = Form(_INSTANCE, ", which is not a SageMaker type", "write each like ml.g5.48xlarge")
# As a job prints it, ``name=value``, and as a metric of the service.
METRIC = Form(
    re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@%+-]*"), "cannot be printed as name=value",
    "use letters, digits and _./:@%+-, such as eval_accuracy",
)  # fmt: skip
# As many digits of a digest as a person copies.
EVALUATION_SET = Form(
    re.compile(r"[0-9a-f]{12,64}"), "is no digest of an evaluation set",
    "use 12 to 64 digits of a run's set_sha256",
)  # fmt: skip
ROLE = Form(
    re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}"),
    "is not the ARN of an IAM role", "give one such as arn:aws:iam::123456789012:role/training",
)  # fmt: skip
IMAGE = Form(
    re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?/\S+[:@]\S+"),
    "is not an image with its registry and a tag or digest",
    "write it like 123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1",
    255,
)
# In a registry that is not ECR: SageMaker pulls it through a VPC alone.
PRIVATE_IMAGE = re.compile(r"(?![^/]*\.dkr\.ecr\.)[^/]*\.[^/]*/")


def hyperparameter_problems(values: Mapping[str, object]) -> Iterator[Problem]:
    """Names that do not reach the script as ``--name value``, or are the trial's own."""
    for name in values:
        if name in OWN_HYPERPARAMETERS:
            problem = "is set by the trial, so this value would never reach the script"
            yield name, problem, OWN_HYPERPARAMETERS[name]
        elif not _HYPERPARAMETER.fullmatch(name) or not name.isprintable():
            problem = "is a name that cannot be an argument of a script"
            yield name, problem, "use letters, digits and _@%+:,./- only, without a leading dash"
    if PARTITIONING in values and json_object(values[PARTITIONING]) is None:
        fix = """for example '{"partitions": 2}'"""
        yield PARTITIONING, "must be a JSON object in quotes", fix


def environment_problems(names: Iterable[str]) -> Iterator[Problem]:
    """Variables that the trial or the training toolkit sets."""
    for name in names:
        if name in OWN_ENVIRONMENT or name.upper().startswith(OWN_PREFIXES):
            yield name, "is set by the trial or by SageMaker", "remove it"


def tag_problems(names: Iterable[str]) -> Iterator[Problem]:
    """Keys with a reserved prefix."""
    for name in names:
        if name.lower().startswith(TAG_PREFIXES):
            problem = f"begins with a reserved prefix ({' or '.join(TAG_PREFIXES)})"
            yield name, problem, "choose another key"


def price_problems(prices: Mapping[str, object]) -> Iterator[Problem]:
    """What is no price of an instance type."""
    for name, usd in prices.items():
        if not _INSTANCE.fullmatch(name) or not isinstance(usd, float) or not 0 < usd < _MOST_USD:
            yield name, "is not a price", (
                "write an instance type and US dollars per hour, "
                'for example {"ml.g5.xlarge": 1.41}'
            )  # fmt: skip


def input_problems(places: Mapping[str, str]) -> Iterator[Problem]:
    """Places that hold no data; channels whose folders a script would find under one variable."""
    for channel, place in places.items():
        wrong = _place_problem(place)
        if wrong:
            yield channel, *wrong
    seen: dict[str, str] = {}
    for name in places:
        variable = f"SM_CHANNEL_{_CHANNEL_IN_ENVIRONMENT.sub('_', name).upper()}"
        if variable in seen:
            problem = f"is {variable} in the job, and so is the channel {seen[variable]}"
            yield name, problem, "choose another name for one"
        seen[variable] = name


def _place_problem(place: str) -> tuple[str, str] | None:
    write = "write s3://bucket/folder/, or a path inside the project"
    if place.startswith(_S3):
        bucket = place.removeprefix(_S3).partition("/")[0]
        if _BUCKET.fullmatch(bucket):
            return None
        return f"has no bucket that S3 could have ({bucket!r})", write
    if "://" in place or place.startswith("s3:"):
        return "is neither an S3 URI nor a path", "write s3://bucket/key"
    if not _INNER.fullmatch(place) or not PurePosixPath(place).parts:
        return "is not a path inside the project", write
    return None
