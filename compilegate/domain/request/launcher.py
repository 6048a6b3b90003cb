"""How the training toolkit in the image starts an arm's processes.

The keys are those that the SageMaker Python SDK 2.257.7 sends for the same job; the toolkit reads
them back (aws/sagemaker-pytorch-training-toolkit@d929872, training.py). It takes the first
launcher that it finds, so a request names one at most.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import for_launcher
from compilegate.domain.compilers import compiler_named
from compilegate.domain.compilers.descriptor import Launching
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import parts
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.service_limits import Violation, violations
from compilegate.domain.workload.model import Framework, Workload
from compilegate.domain.workload.names import PARTITIONING, json_object

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


# The hyperparameters of a job, and how they are written.
#
# Values are JSON text, as the SageMaker Python SDK sends them and the training toolkit decodes
# them.

PLATFORM_PREFIX = "sagemaker_"
# The toolkit's own default, which the SDK writes out: Python's logging.INFO.
LOG_LEVEL = 20


def of_arm(workload: Workload, arm: ArmPlan) -> dict[str, Any]:
    """The script's own values of one arm.

    Raises InvalidInputError for a name that belongs to the platform.
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
        own[PARTITIONING] = partitioning(own[PARTITIONING])
    mode = {"compile_mode": arm.compile_mode} if arm.compile_mode else {}
    return {
        **own,
        "arm": arm.name,
        "compiler": arm.compiler,
        **mode,
        "precision": arm.precision,
        "batch_size": arm.batch_size,
        "learning_rate": arm.learning_rate,
    }


def as_read_by(script: str, values: Mapping[str, Any], *, shell: bool = True) -> dict[str, Any]:
    """The values as ``script`` reads them: the launcher decodes what a shell would change.

    Without a ``shell``: the speed gate starts the script itself.
    """
    if script != naming.LAUNCHER:
        return dict(values)
    return {name: for_launcher(value, shell=shell) for name, value in values.items()}


def of_platform(program: str, source_uri: str, region: str) -> dict[str, Any]:
    """What the toolkit itself reads: the location of the code and the program to start."""
    return {
        "sagemaker_program": program,
        "sagemaker_submit_directory": source_uri,
        "sagemaker_container_log_level": LOG_LEVEL,
        "sagemaker_region": region,
    }


def encoded(values: Mapping[str, Any]) -> dict[str, str]:
    """Every value as JSON text."""
    return {name: json.dumps(value) for name, value in values.items()}


def partitioning(value: object) -> dict[str, Any]:
    """The settings of the model-parallel library. Raises InvalidInputError for other text."""
    settings = json_object(value)
    if settings is None:
        raise InvalidInputError(
            "must be a JSON object in quotes",
            field=f"training.hyperparameters.{PARTITIONING}",
            value=value,
            fix=f'for example {PARTITIONING}: \'{{"partitions": 2, "ddp": true}}\'',
        )
    return settings


# Why SageMaker or Step Functions would reject a request.
#
# The service's model states most rules (``service_limits``); ``broken_rules`` are those that its
# documentation adds (API reference of CreateTrainingJob, StoppingCondition and Tag).

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
