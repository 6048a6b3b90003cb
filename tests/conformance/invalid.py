"""Combinations that cannot work.

Each is asked of the SDK as its user would write it and of our check as a workload file would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.cases import MANAGED

ON = {"enabled": True}
XLA = {"pytorchxla": ON}
TORCHRUN = {"torch_distributed": ON}
DDP = {"pytorchddp": ON}
SMDDP = {"smdistributed": {"dataparallel": ON}}
SMP = {"smdistributed": {"modelparallel": ON}, "mpi": ON}
LAUNCHES: Mapping[str, Mapping[str, Any]] = {
    "none": {}, "pytorchxla": XLA, "torch_distributed": TORCHRUN, "pytorchddp": DDP,
    "smddp": SMDDP, "smp": SMP,
}  # fmt: skip
LARGE = "ml.g5.48xlarge"


@dataclass(frozen=True)
class Invalid:
    """One combination of a framework, versions and a launcher.

    ``sdk`` are estimator arguments that say it otherwise than our words do.
    """

    name: str
    framework: str
    version: str
    transformers: str | None = None
    python: str | None = None
    compiler: str = MANAGED
    distribution: str = "none"
    instance_type: str = "ml.g5.2xlarge"
    instance_count: int = 1
    region: str = "us-east-1"
    groups: bool = False
    sdk: Mapping[str, Any] = field(default_factory=dict)


def _hf(name: str, version: str, transformers: str, python: str, **more: Any) -> Invalid:
    return Invalid(name, "huggingface-pytorch", version, transformers, python, **more)


def _pt(name: str, version: str, python: str, **more: Any) -> Invalid:
    return Invalid(name, "pytorch", version, None, python, **more)


def _tf(name: str, version: str, python: str = "py39", **more: Any) -> Invalid:
    return Invalid(name, "tensorflow", version, None, python, **more)


_HUGGING_FACE = (
    _hf("an article's example", "2.1.0", "4.36.0", "py310", distribution="pytorchddp",
        instance_type=LARGE, instance_count=8),
    _hf("Transformers newer than the compiler", "1.13.1", "4.26.0", "py39"),
    _hf("newest Transformers", "2.8.0", "4.56.2", "py312"),
    _hf("DDP instead of torch_xla", "1.11.0", "4.21.1", "py38", distribution="pytorchddp",
        instance_type=LARGE),
    _hf("torchrun instead of torch_xla", "1.11.0", "4.21.1", "py38",
        distribution="torch_distributed", instance_type=LARGE),
    _hf("Transformers of another image", "1.11.0", "4.36.0", "py38", distribution="pytorchxla",
        instance_type=LARGE),
    _hf("Python of another image", "1.11.0", "4.21.1", "py310"),
    _hf("torch_xla's runner before it existed", "1.10.2", "4.17.0", "py38",
        distribution="pytorchxla", instance_type=LARGE),
    _hf("data parallelism of SageMaker's", "1.10.2", "4.17.0", "py38", distribution="smddp",
        instance_type="ml.p4d.24xlarge"),
    _hf("model parallelism of SageMaker's", "1.10.2", "4.17.0", "py38", distribution="smp",
        instance_type="ml.p4d.24xlarge"),
    _hf("a region without the oldest images", "1.9.0", "4.11.0", "py38", region="eu-central-1"),
    _hf("GovCloud", "1.11.0", "4.21.1", "py38", region="us-gov-west-1"),
    _hf("China", "1.11.0", "4.21.1", "py38", region="cn-north-1"),
    _hf("no launcher on eight GPUs", "1.11.0", "4.21.1", "py38", instance_type=LARGE),
    _hf("a launcher that is switched off", "1.11.0", "4.21.1", "py38", instance_type=LARGE,
        instance_count=2, sdk={"distribution": {"pytorchxla": {"enabled": False}}}),
    _hf("torch_xla without the compiler", "2.1.0", "4.36.0", "py310", compiler="none",
        distribution="pytorchxla", instance_type=LARGE),
    Invalid("TensorFlow with torch_xla", "huggingface-tensorflow", "2.6.3", "4.17.0", "py38",
            distribution="pytorchxla", instance_type=LARGE),
    Invalid("the documentation's TensorFlow example", "huggingface-tensorflow", "2.6.3", "4.21.1",
            "py38"),
)  # fmt: skip
_PYTORCH = (
    _pt("PyTorch before its first image", "1.11.0", "py38"),
    _pt("PyTorch 2.1", "2.1.0", "py310"),
    _pt("PyTorch 2.1 on eight GPUs", "2.1.0", "py310", distribution="pytorchxla",
        instance_type=LARGE),
    _pt("newest PyTorch", "2.8.0", "py312"),
    _pt("Python of the documentation's example", "1.13.1", "py3"),
    _pt("torchrun instead of torch_xla", "1.13.1", "py39", distribution="torch_distributed",
        instance_type=LARGE),
    _pt("DDP instead of torch_xla", "1.13.1", "py39", distribution="pytorchddp",
        instance_type=LARGE),
    _pt("data parallelism of SageMaker's", "1.12.0", "py38", distribution="smddp",
        instance_type="ml.p4d.24xlarge"),
    _pt("no launcher on eight GPUs", "1.13.1", "py39", instance_type=LARGE),
    _pt("no launcher on two machines", "1.13.1", "py39", instance_count=2),
    _pt("a launcher that is switched off", "1.13.1", "py39", instance_type=LARGE,
        instance_count=2, sdk={"distribution": {"pytorchxla": {"enabled": False}}}),
    _pt("torch_xla without the compiler", "1.13.1", "py39", compiler="none",
        distribution="pytorchxla", instance_type=LARGE),
    _pt("a cluster of several types", "1.13.1", "py39", groups=True),
    _pt("GovCloud", "1.13.1", "py39", region="us-gov-west-1"),
    _pt("China", "1.13.1", "py39", region="cn-northwest-1"),
)  # fmt: skip
_MACHINES = tuple(
    _pt(f"on {kind}", "1.13.1", "py39", instance_type=kind, distribution="pytorchxla")
    for kind in (
        "ml.p4de.24xlarge", "ml.p5.48xlarge", "ml.g6.48xlarge", "ml.g6e.48xlarge",
        "ml.m6i.12xlarge", "ml.p3.2xlarge", "ml.p3.16xlarge",
    )
)  # fmt: skip
_TENSORFLOW = (
    _tf("TensorFlow before the compiler", "2.8.0"),
    _tf("TensorFlow 2.12", "2.12.0", "py310"),
    _tf("TensorFlow 2.13", "2.13.0", "py310"),
    _tf("newest TensorFlow", "2.19.0", "py312"),
    _tf("data parallelism of SageMaker's", "2.11.0", distribution="smddp",
        instance_type="ml.p4d.24xlarge"),
    _tf("China", "2.11.0", region="cn-north-1"),
    _tf("GovCloud", "2.11.0", region="us-gov-west-1"),
    _tf("the documentation's 2.9.1", "2.9.1"),
    _tf("the documentation's 2.10.0", "2.10.0"),
)  # fmt: skip
_OTHERS = (
    Invalid("boosted trees", "xgboost", "1.7-1", instance_type="ml.m6i.12xlarge"),
    Invalid("scikit-learn", "sklearn", "1.2-1", instance_type="ml.m6i.12xlarge"),
)

_P4D, _P5 = "ml.p4d.24xlarge", "ml.p5.48xlarge"
_LAUNCHED = (
    _pt("data parallelism of SageMaker's on A10G", "2.1.0", "py310", compiler="none",
        distribution="smddp", instance_type=LARGE),
    _pt("data parallelism of SageMaker's on H100", "2.1.0", "py310", compiler="none",
        distribution="smddp", instance_type=_P5),
    _pt("data parallelism of SageMaker's after its last version", "2.8.0", "py312",
        compiler="none", distribution="smddp", instance_type=_P4D),
    _pt("DDP, which is the same runner, after its last version", "2.8.0", "py312",
        compiler="none", distribution="pytorchddp", instance_type=_P4D),
    _pt("torchrun before its first version", "1.12.0", "py38", compiler="none",
        distribution="torch_distributed", instance_type=LARGE),
    _pt("torchrun on a CPU", "2.1.0", "py310", compiler="none",
        distribution="torch_distributed", instance_type="ml.m6i.12xlarge"),
    _tf("torchrun", "2.11.0", compiler="none", distribution="torch_distributed",
        instance_type=LARGE),
    _tf("DDP", "2.11.0", compiler="none", distribution="pytorchddp", instance_type=LARGE),
    _tf("data parallelism of SageMaker's after its last version", "2.13.0", "py310",
        compiler="none", distribution="smddp", instance_type=_P4D),
    _hf("the first model parallelism on PyTorch 2", "2.1.0", "4.36.0", "py310", compiler="none",
        distribution="smp", instance_type=_P4D),
    Invalid("torchrun", "xgboost", "1.7-1", compiler="none", distribution="torch_distributed",
            instance_type="ml.m6i.12xlarge"),
    Invalid("two machines", "sklearn", "1.2-1", compiler="none", instance_count=2,
            instance_type="ml.m6i.12xlarge"),
)  # fmt: skip

INVALID: tuple[Invalid, ...] = (
    *_HUGGING_FACE, *_PYTORCH, *_MACHINES, *_TENSORFLOW, *_OTHERS, *_LAUNCHED,
)  # fmt: skip


def key(row: Invalid) -> str:
    """A name that no other row has."""
    return f"{row.framework} {row.version}: {row.name}"
