"""How the training toolkit in the image starts an arm's processes.

The keys are those that the SageMaker Python SDK 2.257.7 sends for the same job; the toolkit reads
them back (aws/sagemaker-pytorch-training-toolkit@d929872, training.py). It takes the first
launcher that it finds, so a request names one at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.compilers import compiler_named
from compilegate.domain.compilers.descriptor import Launching
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts.versions import parts
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.workload.model import Framework

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
    compiler = compiler_named(arm.compiler)
    if compiler is not None and compiler.launching is not None:
        return _managed(arm, framework, script, compiler.launching)
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
    launching = None if compiler is None else compiler.launching
    can = sorted(kind for kind, name in _LAUNCHERS if name == framework.name)
    under = ""
    if compiler is not None and launching is not None:
        can = [launching.distribution] if framework.name in _PYTORCH else []
        under = f" under {compiler.title}"
    return InvalidInputError(
        f"{framework.name} {framework.version} cannot be launched this way{under}",
        field=f"{arm.name}: distribution",
        value=arm.distribution,
        fix=f"use one of {', '.join(['none', *can])}",
    )
