"""Builds complete CreateTrainingJob requests: full runs, speed jobs and production's runs.

The job name lacks its retry suffix, which the state machine appends, so that a retried job never
reuses a name. Launchers are switched on by the keys that the SageMaker Python SDK 2.257.7 sends for
the same job; the toolkit in the image reads them back
(aws/sagemaker-pytorch-training-toolkit@d929872, training.py) and takes the first launcher that it
finds, so a request names one at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded_document, for_launcher, json_object
from compilegate.domain.compilers import Launching, compiler_named
from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import parts
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.planning.rounds import speed_job_seconds
from compilegate.domain.workload.model import BASELINE, Framework, Training, Workload, job_seconds
from compilegate.domain.workload.names import METRIC_LINE, PARTITIONING, PRIVATE_IMAGE, TAG_PREFIXES

# The sections of a CreateTrainingJob request, and what a deployment fixes for all of them.

# Metrics that a job prints on lines of progress.
PROGRESS_METRICS = ("step", "steps", "seconds", "samples_per_second", "loss")
PLATFORM_PREFIX = "sagemaker_"
# The toolkit's own default, which the SDK writes out: Python's logging.INFO.
LOG_LEVEL = 20
# A job in network isolation gets its source as the SDK sends it (2.257.7).
CODE_CHANNEL = "code"
CODE_FOLDER = f"/opt/ml/input/data/{CODE_CHANNEL}"


@dataclass(frozen=True)
class JobSite:
    """Where jobs of a deployment run; ``job_roles`` as naming.job_role_arn takes them.

    ``tags`` and ``rules`` are the deployment's own, of every job.
    """

    stage: str
    bucket: str
    region: str
    job_roles: str
    kms_key_arn: str | None = None
    subnet_ids: Sequence[str] = ()
    security_group_ids: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    rules: JobRules = field(default_factory=JobRules)

    def context(self, workload: str, *, trial: str, execution: str, source_key: str) -> JobContext:
        """The context of a trial's jobs, or of a production run's: then ``trial`` is its id."""
        role = naming.job_role_arn(self.job_roles, workload)
        return JobContext(self, role, trial, execution, source_key)


@dataclass(frozen=True)
class JobContext:
    """What a deployment and a trial fix for every job."""

    site: JobSite
    role_arn: str
    trial: str
    execution: str
    source_key: str

    def uri(self, key: str) -> str:
        """A key of the data bucket as S3 names it."""
        return f"s3://{self.site.bucket}/{key}"


def uploaded(workload: Workload, context: JobContext, digest: str) -> Workload:
    """The workload as it is once inputs that lie beside its file are uploaded under a digest."""
    inputs = {
        channel: uri
        if "://" in uri
        else context.uri(naming.input_prefix(workload.name, channel, digest))
        for channel, uri in workload.training.inputs.items()
    }
    return replace(workload, training=replace(workload.training, inputs=inputs))


def _data(workload: Workload, run: str, context: JobContext) -> dict[str, Any]:
    """One channel per input, where the evidence goes, and what outlives a job.

    In network isolation the source is a channel as well: the job cannot fetch it itself.

    That is the workload's compile cache, or a spot job's own checkpoints: an interrupted one
    continues from its run's own, since a run that started from those of another arm or seed would
    not measure anything. Its compile cache lies among them.
    """
    training, key = workload.training, context.site.kms_key_arn
    source = {"S3DataType": "S3Prefix", "S3DataDistributionType": "FullyReplicated"}
    isolated = context.site.rules.network_isolation
    code = [(CODE_CHANNEL, context.uri(context.source_key))] if isolated else []
    channels = [
        {"ChannelName": name, "DataSource": {"S3DataSource": {**source, "S3Uri": uri}}}
        for name, uri in (*sorted(training.inputs.items()), *code)
    ]
    output = context.uri(naming.jobs_prefix(workload.name, context.trial))
    if training.spot:
        prefix = naming.checkpoint_prefix(workload.name, context.trial, run)
        kept = {"S3Uri": context.uri(prefix), "LocalPath": naming.CHECKPOINT_PATH}
    else:
        prefix = naming.compile_cache_prefix(workload.name)
        kept = {"S3Uri": context.uri(prefix), "LocalPath": naming.COMPILE_CACHE_PATH}
    return {
        **({"InputDataConfig": channels} if channels else {}),
        "OutputDataConfig": {"S3OutputPath": output, **({"KmsKeyId": key} if key else {})},
        "CheckpointConfig": kept,
    }


def _environment(training: Training, arm: ArmPlan) -> dict[str, str]:
    """Where the compile cache and a spot job's checkpoints lie; the image that evidence names.

    The job's runtime works on a local copy of the compile cache and changes TORCHINDUCTOR_CACHE_DIR
    to it. That variable is for bundles uploaded by version 0.1, whose runtime lacks the copy: with
    it their cache stays warm.
    """
    folder = naming.CHECKPOINT_PATH if training.spot else naming.NO_CHECKPOINTS
    return {
        "COMPILEGATE_CHECKPOINT_DIR": folder,
        "COMPILEGATE_COMPILE_CACHE": naming.INDUCTOR_CACHE_PATH,
        "TORCHINDUCTOR_CACHE_DIR": naming.INDUCTOR_CACHE_PATH,
        "COMPILEGATE_IMAGE": arm.image,
        **training.environment,
    }


def _machines(training: Training, arm: ArmPlan, site: JobSite) -> dict[str, Any]:
    """The cluster, at the workload's own time limit, in the deployment's own network if any.

    Without a key for its volume: SageMaker refuses one where the type has local storage, as every
    GPU type on file has, and encrypts such storage in hardware (API reference, ResourceConfig).
    """
    subnets, groups = list(site.subnet_ids), list(site.security_group_ids)
    vpc = {"VpcConfig": {"Subnets": subnets, "SecurityGroupIds": groups}} if subnets else {}
    rules = {
        "EnableNetworkIsolation": site.rules.network_isolation,
        "EnableInterContainerTrafficEncryption": site.rules.encrypt_between_instances,
    }
    return {
        **{name: True for name, holds in rules.items() if holds},
        "ResourceConfig": {
            "InstanceType": arm.instance_type,
            "InstanceCount": arm.instance_count,
            "VolumeSizeInGB": training.volume_gb,
        },
        **({"EnableManagedSpotTraining": True} if training.spot else {}),
        "StoppingCondition": _stopping(training, job_seconds(training.max_runtime_hours)),
        **vpc,
    }


def _stopping(training: Training, runtime_seconds: int) -> dict[str, int]:
    """Of a job that trains so long at most; a spot job's waiting includes its training."""
    limit = {"MaxRuntimeInSeconds": runtime_seconds}
    if not training.spot:
        return limit
    return {**limit, "MaxWaitTimeInSeconds": runtime_seconds + training.spot_waiting_seconds}


def _tags(
    workload: Workload, run: str, stage: str, arm: str, context: JobContext
) -> list[dict[str, str]]:
    """The trial's own tags, the deployment's, the owner's and the team's, which go before others.

    Raises InvalidInputError for a key that begins with a reserved prefix.
    """
    for key in workload.tags:
        if key.lower().startswith(TAG_PREFIXES):
            raise InvalidInputError(
                f"begins with a reserved prefix ({' or '.join(TAG_PREFIXES)})",
                field=f"tags.{key}",
                fix="choose another key",
            )
    owner = {"owner": workload.owner} if workload.owner else {}
    values = {
        naming.TAG_WORKLOAD: workload.name,
        naming.TAG_TRIAL: context.trial,
        naming.TAG_RUN: run,
        naming.TAG_STAGE: stage,
        naming.TAG_ARM: arm,
        naming.TAG_EXECUTION: context.execution,
        **context.site.tags,
        **owner,
        **workload.tags,
    }
    return [{"Key": key, "Value": value} for key, value in values.items()]


# Lets a full run that compiles end with the equivalence check; the same in every arm.
AT_LAST_WEIGHTS = {"COMPILEGATE_EQUIVALENCE": "last"}
SPEED_PROGRAM = f"{naming.RUNTIME_PACKAGE}/speed_gate.py"
PAIRS_PROGRAM = f"{naming.RUNTIME_PACKAGE}/pairs.py"
ALL_ARMS = "all"


@dataclass(frozen=True)
class ProductionJob:
    """One attempt at a run; ``run`` is the run's id, ``number`` the attempt's from 0.

    ``replicate`` counts the workload's runs. ``variables`` and ``tags`` are the job's beside the
    workload's own: what the script may want to know of the decision behind it. ``examined``: the
    job ends with the equivalence check, because a trial asked for the run.
    """

    run: str
    number: int
    replicate: int
    seed: int
    variables: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    examined: bool = False


def quality_request(
    workload: Workload,
    arm: ArmPlan,
    *,
    run: str,
    replicate: int,
    seed: int,
    context: JobContext,
    examined: bool = True,
) -> dict[str, Any]:
    """The full run of one arm with one seed; if ``examined``, it ends with the equivalence check.

    Raises InvalidInputError for a tag, hyperparameter or launcher that is not allowed.
    """
    script = _script(workload, arm)
    values = {**_own_values(workload, arm, script), "seed": seed, "replicate": replicate}
    start = launch(arm, _framework(workload, arm), script)
    request = _request(workload, arm, start, values, run=run, context=context)
    check = AT_LAST_WEIGHTS if examined else {}
    return {
        **request,
        "Environment": {**request["Environment"], **check},
        "Tags": _tags(workload, run, "quality", arm.name, context),
    }


def pairs_request(
    workload: Workload,
    arms: Sequence[ArmPlan],
    runs: Sequence[tuple[str, int, int]],
    *,
    run: str,
    context: JobContext,
) -> dict[str, Any]:
    """One job that makes whole ``runs`` of these arms, of arm, seed and replicate, in their order.

    They share nodes, and the workload's time limit. Raises InvalidInputError as
    ``quality_request`` does.
    """
    values = {"program": _script(workload, arms[0]), "runs": encoded_document(runs)}
    values |= _arms_values(workload, arms)
    start = launch_segments(arms[0], _framework(workload, arms[0]), PAIRS_PROGRAM)
    request = _request(workload, arms[0], start, values, run=run, context=context)
    return {
        **request,
        "Environment": {**request["Environment"], **AT_LAST_WEIGHTS},
        "Tags": _tags(workload, run, "quality", ALL_ARMS, context),
    }


def _arms_values(workload: Workload, arms: Sequence[ArmPlan]) -> dict[str, Any]:
    """The hyperparameters of a job that starts the script of several arms itself."""
    values = {}
    for index, arm in enumerate(arms):
        own = _own_values(workload, arm, _script(workload, arm), shell=False)
        if PARTITIONING in own:
            values[PARTITIONING] = own.pop(PARTITIONING)
        values[f"arm_{index}"] = encoded_document({"name": arm.name, "hyperparameters": own})
    return values


def speed_request(
    workload: Workload,
    arms: Sequence[ArmPlan],
    *,
    run: str,
    first_block: int,
    blocks: int,
    steps: int,
    context: JobContext,
) -> dict[str, Any]:
    """One job that runs short segments of these arms back to back, block by block.

    Arms that need other nodes than the baseline come without it, in a job of their own.
    Raises InvalidInputError as ``quality_request`` does.
    """
    values: dict[str, Any] = {
        "program": _script(workload, arms[0]),
        "first_block": first_block,
        "blocks": blocks,
        "steps": steps,
    }
    if all(arm.name != BASELINE for arm in arms):
        values["baseline"] = "elsewhere"
    values |= _arms_values(workload, arms)
    hours = workload.training.max_runtime_hours
    limit = speed_job_seconds(hours, arms=len(arms), blocks=blocks)
    start = launch_segments(arms[0], _framework(workload, arms[0]), SPEED_PROGRAM)
    return {
        **_request(workload, arms[0], start, values, run=run, context=context),
        "StoppingCondition": _stopping(workload.training, limit),
        "Tags": _tags(workload, run, "speed", ALL_ARMS, context),
    }


def production_request(
    workload: Workload, arm: ArmPlan, job: ProductionJob, context: JobContext
) -> dict[str, Any]:
    """The request; ``context.trial`` is the run's id. Raises InvalidInputError as a trial's does.

    Its output lies where nothing expires, a spot job's checkpoints beside it.
    """
    request = quality_request(
        workload,
        arm,
        run=naming.attempt(job.number),
        replicate=job.replicate,
        seed=job.seed,
        context=context,
        examined=job.examined,
    )
    output = context.uri(naming.production_jobs_prefix(workload.name, job.run))
    checkpoints = request["CheckpointConfig"]
    if workload.training.spot:  # any other job has the compile cache alone
        own = f"{output}/checkpoints/{naming.attempt(job.number)}/"
        checkpoints = {**checkpoints, "S3Uri": own}
    of_a_trial = _tags(workload, job.run, naming.PRODUCTION_STAGE, arm.name, context)
    return {
        **request,
        "OutputDataConfig": {**request["OutputDataConfig"], "S3OutputPath": output},
        "CheckpointConfig": checkpoints,
        "Environment": {**request["Environment"], **job.variables},
        "Tags": [
            *(tag for tag in of_a_trial if tag["Key"] != naming.TAG_TRIAL),
            *({"Key": key, "Value": value} for key, value in job.tags.items()),
        ],
    }


def _script(workload: Workload, arm: ArmPlan) -> str:
    return arm.entry_point or workload.training.entry_point


def _framework(workload: Workload, arm: ArmPlan) -> Framework:
    return Framework(**arm.framework) if arm.framework else workload.framework


def _request(
    workload: Workload,
    arm: ArmPlan,
    start: Launch,
    values: Mapping[str, Any],
    *,
    run: str,
    context: JobContext,
) -> dict[str, Any]:
    training, names = workload.training, (*PROGRESS_METRICS, *workload.quality.reported)
    source = context.uri(context.source_key)
    if context.site.rules.network_isolation:
        source = f"{CODE_FOLDER}/{context.source_key.rpartition('/')[2]}"
    platform = {
        "sagemaker_program": start.program,
        "sagemaker_submit_directory": source,
        "sagemaker_container_log_level": LOG_LEVEL,
        "sagemaker_region": context.site.region,
    }
    all_values = {**values, **start.hyperparameters, **platform}
    return {
        "TrainingJobName": naming.job_base(workload.name, context.trial, run),
        "RoleArn": context.role_arn,
        "AlgorithmSpecification": {
            "TrainingImage": arm.image,
            "TrainingInputMode": "File",
            **_registry(arm.image, context.site.rules),
            "EnableSageMakerMetricsTimeSeries": True,
            "MetricDefinitions": [
                {"Name": name, "Regex": METRIC_LINE.format(re.escape(name))}
                for name in dict.fromkeys(names)
            ],
        },
        "HyperParameters": {name: json.dumps(value) for name, value in all_values.items()},
        "Environment": {**start.environment, **_environment(training, arm)},
        **_data(workload, run, context),
        **_machines(training, arm, context.site),
    }


def _registry(image: str, rules: JobRules) -> dict[str, Any]:
    """How SageMaker pulls an image that is not in ECR: through the job's VPC."""
    if not PRIVATE_IMAGE.match(image):
        return {}
    arn = rules.registry_credentials
    signs_in = {"TrainingRepositoryCredentialsProviderArn": arn}
    return {
        "TrainingImageConfig": {
            "TrainingRepositoryAccessMode": "Vpc",
            **({"TrainingRepositoryAuthConfig": signs_in} if arn else {}),
        }
    }


# How the training toolkit in the image starts an arm's processes.

# Starts a script on every GPU where the managed compiler's image has no launcher of its own.
XLA_LAUNCHER = f"{naming.RUNTIME_PACKAGE}/xla_launcher.py"
# From these on, torch_xla's own runner does it (HuggingFace 1.11; PyTorch 1.12 is its first).
XLA_RUNNER_SINCE = (1, 11)
# Version 2 of the model-parallel library runs under torchrun, version 1 under MPI.
SMP_2_SINCE = (2, 0)

_PYTORCH = ("huggingface-pytorch", "pytorch")
_TENSORFLOW = ("huggingface-tensorflow", "tensorflow")
_DEVICES = "GPU_NUM_DEVICES"
_RUNNER = "sagemaker_pytorch_xla_multi_worker_enabled"
_SCRIPT = "training_script"
_TORCHRUN = {"sagemaker_torch_distributed_enabled": True}
_DATA_PARALLEL = {
    "sagemaker_distributed_dataparallel_enabled": True,
    "sagemaker_distributed_dataparallel_custom_mpi_options": "",
}
# The switches by distribution and framework; of smp they depend on the version. The PyTorch
# estimator turns pytorchddp into smdistributed's data parallel runner, the Hugging Face one does
# not; in the container both are the same runner.
_LAUNCHERS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    **{("torch_distributed", name): _TORCHRUN for name in _PYTORCH},
    ("pytorchddp", "huggingface-pytorch"): {"sagemaker_pytorch_ddp_enabled": True},
    ("pytorchddp", "pytorch"): _DATA_PARALLEL,
    **{("smddp", name): _DATA_PARALLEL for name in (*_PYTORCH, *_TENSORFLOW)},
    **{("smp", name): {} for name in (*_PYTORCH, *_TENSORFLOW)},
}


@dataclass(frozen=True)
class Launch:
    """What a job starts with, and what that adds to its hyperparameters and variables."""

    program: str
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def launch(arm: ArmPlan, framework: Framework, script: str) -> Launch:
    """How ``script`` starts on every device of the arm.

    Raises InvalidInputError for a distribution that framework or compiler cannot run.
    """
    launching = compiler_named(arm.compiler).launching
    if launching is not None:
        return _managed(arm, framework, script, launching)
    if arm.distribution == "none":
        return Launch(script)
    if (arm.distribution, framework.name) not in _LAUNCHERS:
        raise _refused(arm, framework)
    switches = _LAUNCHERS[arm.distribution, framework.name]
    if arm.distribution == "smp":
        switches = _model_parallel(arm, framework)
    return Launch(script, {**switches, "sagemaker_instance_type": arm.instance_type})


def _managed(arm: ArmPlan, framework: Framework, script: str, launching: Launching) -> Launch:
    """SageMaker Training Compiler: its switches, and its way onto several GPUs.

    Source: awsdocs training-compiler-enable-pytorch.md and training-compiler-troubleshooting.md,
    which requires GPU_NUM_DEVICES wherever the runner does not set it.
    """
    switches = dict(launching.switches)
    pytorch = framework.name in _PYTORCH
    runner = pytorch and parts(framework.version)[:2] >= XLA_RUNNER_SINCE
    if arm.distribution == launching.distribution and runner:
        return Launch(script, {_RUNNER: True, **switches})
    if arm.distribution != "none":
        raise _refused(arm, framework)
    environment = {_DEVICES: str(arm.devices // arm.instance_count)} if pytorch else {}
    if pytorch and not runner and arm.devices > 1:
        return Launch(XLA_LAUNCHER, {_SCRIPT: script, **switches}, environment)
    return Launch(script, switches, environment)


def launch_segments(arm: ArmPlan, framework: Framework, gate: str) -> Launch:
    """How the speed job's program ``gate`` starts, which in turn starts segments of the script.

    torch_xla's launchers call a function of the script in processes of their own, so a speed job
    runs them itself, once for each segment; under every other launcher it is one of the processes.
    Raises InvalidInputError as ``launch`` does.
    """
    whole = launch(arm, framework, gate)
    kept = dict(whole.hyperparameters)
    if kept.pop(_RUNNER, None):
        kept["launcher"] = "xla_spawn"
    elif kept.pop(_SCRIPT, None):
        kept["launcher"] = "sm_dist"
    return Launch(gate, kept, whole.environment)


def _model_parallel(arm: ArmPlan, framework: Framework) -> dict[str, Any]:
    common = {"sagemaker_distributed_dataparallel_enabled": False}
    if framework.name in _PYTORCH and parts(framework.version)[:2] >= SMP_2_SINCE:
        return {**common, **_TORCHRUN}
    return {
        **common,
        "sagemaker_mpi_enabled": True,
        "sagemaker_mpi_num_of_processes_per_host": arm.devices // arm.instance_count,
        "sagemaker_mpi_custom_mpi_options": "",
    }


def _refused(arm: ArmPlan, framework: Framework) -> InvalidInputError:
    compiler = compiler_named(arm.compiler)
    launching = compiler.launching
    can = sorted(kind for kind, name in _LAUNCHERS if name == framework.name)
    under = ""
    if launching is not None:
        can = [launching.distribution] if framework.name in _PYTORCH else []
        under = f" under {compiler.title}"
    return InvalidInputError(
        f"{framework.name} {framework.version} cannot be launched this way{under}",
        field=f"{arm.name}: distribution",
        value=arm.distribution,
        fix=f"use one of {', '.join(['none', *can])}",
    )


# The hyperparameters of a job: JSON text, as the SageMaker Python SDK sends them and the training
# toolkit decodes them.


def _own_values(
    workload: Workload, arm: ArmPlan, script: str, *, shell: bool = True
) -> dict[str, Any]:
    """The values of one arm as ``script`` reads them: launch.py decodes what a shell would change.

    Without a ``shell``: the speed gate starts the script itself. Raises InvalidInputError for a
    name that belongs to the platform, or settings of the model-parallel library that are none.
    """
    own = {**workload.training.hyperparameters, **arm.hyperparameters}
    for name in own:
        if name.startswith(PLATFORM_PREFIX):
            raise InvalidInputError(
                "is a name that only SageMaker's toolkit uses",
                field=f"training.hyperparameters.{name}",
                fix="leave it out; launchers follow training.distribution",
            )
    if PARTITIONING in own:
        settings = json_object(own[PARTITIONING])
        if settings is None:
            raise InvalidInputError(
                "must be a JSON object in quotes",
                field=f"training.hyperparameters.{PARTITIONING}",
                value=own[PARTITIONING],
                fix=f'for example {PARTITIONING}: \'{{"partitions": 2, "ddp": true}}\'',
            )
        own[PARTITIONING] = settings
    own |= {"arm": arm.name, "compiler": arm.compiler}
    own |= {"compile_mode": arm.compile_mode} if arm.compile_mode else {}
    own |= {
        "precision": arm.precision,
        "batch_size": arm.batch_size,
        "learning_rate": arm.learning_rate,
    }
    if script != naming.LAUNCHER:
        return own
    return {name: for_launcher(value, shell=shell) for name, value in own.items()}
