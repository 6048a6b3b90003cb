"""What one training job is asked for, in words that our builder and the SDK both understand.

Read by two environments: ours, and the SageMaker Python SDK's, which knows nothing of Compilegate.
The values below are what a person would hand the SDK to get the job that Compilegate asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

MANAGED = "sagemaker_training_compiler"
BUCKET = "data"
WORKLOAD = "bert-docs"
TRIAL = "abcd1234"
RUN = "q1b17"
JOB = f"cg-{WORKLOAD}-{TRIAL}-{RUN}"
ARM = "compile"
OWNER = "ml-platform"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:evaluate:bert-docs-abcd1234"
ROLE = "arn:aws:iam::123456789012:role/training-role"
SOURCE_KEY = f"workloads/{WORKLOAD}/source/d1/sourcedir.tar.gz"
SOURCE = f"s3://{BUCKET}/{SOURCE_KEY}"
OUTPUT = f"s3://{BUCKET}/experiments/{WORKLOAD}/{TRIAL}/jobs"
CACHE = f"s3://{BUCKET}/compile-cache/{WORKLOAD}/"
CACHE_PATH = "/opt/ml/checkpoints/compile-cache"
CHECKPOINTS = f"{OUTPUT}/checkpoints/{RUN}/"
CHECKPOINT_PATH = "/opt/ml/checkpoints"
PROGRAM = "train.py"
XLA_LAUNCHER = "compilegate_runtime/xla_launcher.py"
KMS_KEY = "arn:aws:kms:us-east-1:123456789012:key/1234"
SUBNETS = ("subnet-1", "subnet-2")
SECURITY_GROUPS = ("sg-1",)
OWN_TAGS = {"cost-center": "ML 42", "team:stage": "prod"}
OWN_ENVIRONMENT = {"HF_HOME": "/tmp/hf", "TOKENIZERS_PARALLELISM": "false"}
INPUTS = {"train": "s3://corpus/train/", "validation": "s3://corpus/val/"}
OWN_METRIC = "eval:f1"
SEED = 17
REPLICATE = 2
HOURS = 12
WAIT_HOURS = 20
VOLUME_GB = 200
PARTITIONING = {"partitions": 2, "microbatches": 4, "ddp": True}
# GPUs of the types that the matrix uses (EC2 DescribeInstanceTypes).
DEVICES = {
    "ml.g4dn.xlarge": 1, "ml.g4dn.12xlarge": 4, "ml.g5.xlarge": 1, "ml.g5.2xlarge": 1,
    "ml.g5.12xlarge": 4, "ml.g5.48xlarge": 8, "ml.p4d.24xlarge": 8, "ml.p3dn.24xlarge": 8,
    "ml.p5.48xlarge": 8, "ml.g6.12xlarge": 4, "ml.m6i.12xlarge": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One combination; ``options`` are those of ``OPTIONS`` that it adds.

    ``by_uri`` where the SDK does not find the image by its version and gets the URI.
    """

    framework: str
    version: str
    transformers: str | None = None
    python: str | None = None
    compiler: str = "none"
    distribution: str = "none"
    instance_type: str = "ml.g5.2xlarge"
    instance_count: int = 1
    region: str = "us-east-1"
    options: tuple[str, ...] = ()
    by_uri: bool = False

    @property
    def id(self) -> str:
        """A name that says everything the case says."""
        versions = [self.framework, self.version, self.transformers, self.python]
        place = f"{self.instance_count}x{self.instance_type.removeprefix('ml.')}"
        managed = ["managed"] if self.compiler == MANAGED else []
        words = [*versions, *managed, self.distribution, place, self.region, *self.options]
        return " ".join(word for word in words if word)

    @property
    def devices_per_instance(self) -> int:
        """GPUs of one instance."""
        return DEVICES[self.instance_type]

    @property
    def uses_launcher_script(self) -> bool:
        """The managed compiler on several GPUs before PyTorch 1.11 (its documentation)."""
        old = self.framework == "huggingface-pytorch" and self.version in ("1.9.0", "1.10.2")
        return old and self.compiler == MANAGED and self.devices_per_instance > 1


OPTIONS = ("spot", "vpc", "kms", "tags", "environment", "inputs", "metric", "volume")


def hyperparameters(case: Case) -> dict[str, object]:
    """The script's own values."""
    values: dict[str, object] = {
        "epochs": 3,
        "model_name_or_path": "bert-base-cased",
        "warmup": 0.06,
        "shuffle": True,
        "arm": ARM,
        "compiler": case.compiler,
        "precision": "fp16",
        "batch_size": 48,
        "learning_rate": 7.5e-05,
        "seed": SEED,
        "replicate": REPLICATE,
    }
    if case.distribution == "smp":
        values["mp_parameters"] = PARTITIONING
    if case.uses_launcher_script:
        values["training_script"] = PROGRAM
    return values


def environment(case: Case, image: str) -> dict[str, str]:
    """The job's variables; the image's name is known once the SDK has found the image."""
    values = {
        "COMPILEGATE_CHECKPOINT_DIR": "/opt/ml/checkpoints" if "spot" in case.options else "none",
        "COMPILEGATE_COMPILE_CACHE": f"{CACHE_PATH}/inductor",
        "TORCHINDUCTOR_CACHE_DIR": f"{CACHE_PATH}/inductor",
        "COMPILEGATE_IMAGE": image,
    }
    return {**values, **(OWN_ENVIRONMENT if "environment" in case.options else {})}


def tags(case: Case) -> dict[str, str]:
    """Every tag of the job."""
    values = {
        "compilegate:workload": WORKLOAD,
        "compilegate:trial": TRIAL,
        "compilegate:run": RUN,
        "compilegate:stage": "quality",
        "compilegate:arm": ARM,
        "compilegate:execution": EXECUTION,
        "owner": OWNER,
    }
    return {**values, **(OWN_TAGS if "tags" in case.options else {})}


def metrics(case: Case) -> list[dict[str, str]]:
    """What SageMaker reads from the log."""
    own = r"eval:f1" if "metric" in case.options else "eval_accuracy"
    names = ["step", "steps", "seconds", "samples_per_second", "loss", own]
    number = r"([-+0-9.eE]+|nan|inf)"
    line = r"^(?:\[[^\]]*\]<stdout>: ?)?compilegate"  # a launcher by MPI tags each line
    return [{"Name": name, "Regex": rf"{line} .*\b{name}={number}"} for name in names]
