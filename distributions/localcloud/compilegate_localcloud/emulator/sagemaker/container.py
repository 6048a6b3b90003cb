"""A training job's container: the folder /opt/ml, a Python of its own, AWS's container toolkit.

Several jobs share this machine, so every path under ``/opt/ml`` in a request is mapped to the job's
own folder. ``train`` (sagemaker-training, with sagemaker-pytorch-training on top) reads
``input/config``, downloads the source bundle with the job's role, makes the ``SM_*`` variables and
the script's arguments, starts the script and writes the failure file. What is set here is what the
toolkit sees in a container: its base folder, the framework's module, job name and credentials.

Several hosts are one process here, and the launchers by MPI and for XLA expect a machine to
themselves. A job that requests one of those starts without it, and its log says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate_localcloud.emulator.clients import role_credentials
from compilegate_localcloud.emulator.sagemaker.failures import DamagedFolderError, JobFailedError
from compilegate_localcloud.emulator.sagemaker.job import TrainingJob
from compilegate_localcloud.emulator.sagemaker.scheduler import measuring_cores
from compilegate_localcloud.emulator.settings import RUN_VARIABLE, Settings
from compilegate_localcloud.interpreter import Interpreter, own_interpreter
from compilegate_localcloud.names import HOST

CONTAINER_ROOT = "/opt/ml"
# Where the toolkit finds a job's source.
SUBMITTED = "sagemaker_submit_directory"
DEFAULT_CHECKPOINT_PATH = "/opt/ml/checkpoints"
HOSTS = ["algo-1"]
JOB_VARIABLE = "COMPILEGATE_LOCAL_JOB"
# Every job trains on one core, alone on the machine or not: a short block and a full run of the
# same arm must take the same time per step. Only compilers use more.
THREADS = 1
_INHERITED = (
    "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
    # What pip needs to install a bundle's requirements.
    "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "SSL_CERT_FILE",
)  # fmt: skip
# As the images set it (SAGEMAKER_TRAINING_MODULE, aws/deep-learning-containers@e0ecede
# docker/pytorch/Dockerfile.cpu). The TensorFlow toolkit imports tensorflow, which is not here,
# and the XGBoost one is in no package registry: their scripts start without a framework's module.
_PYTORCH = "sagemaker_pytorch_container.training:main"
_OTHER_FRAMEWORKS = ("tensorflow", "xgboost")
TORCHRUN = "sagemaker_torch_distributed_enabled"
# What the toolkits sagemaker-(pytorch-)training look for (modules ``training``, ``trainer``).
_LAUNCHERS = {
    TORCHRUN: "torchrun",
    "sagemaker_mpi_enabled": "MPI",
    "sagemaker_pytorch_ddp_enabled": "pytorchddp",
    "sagemaker_distributed_dataparallel_enabled": "smdistributed's data parallel",
    "sagemaker_pytorch_xla_multi_worker_enabled": "PyTorch XLA",
}


class Layout:
    """Paths of one job, created on construction."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "input" / "config"
        self.data = root / "input" / "data"
        self.model = root / "model"
        self.output = root / "output"
        self.output_data = root / "output" / "data"
        self.intermediate = root / "output" / "intermediate"
        self.failure = root / "output" / "failure"
        self.temporary = root / "tmp"
        self.packages = root / "packages"
        for folder in (
            self.config,
            self.data,
            self.model,
            self.output_data,
            self.intermediate,
            self.temporary,
        ):
            folder.mkdir(parents=True, exist_ok=True)
        self._place = os.path.realpath(root)

    def name(self, folder: Path) -> str:
        """A folder as the job knows it."""
        return f"{CONTAINER_ROOT}/{folder.relative_to(self.root).as_posix()}"

    def check(self, folder: Path) -> None:
        """Raise DamagedFolderError where a file, a link or nothing has taken the folder's place."""
        place = Path(self._place, folder.relative_to(self.root))
        if not folder.is_dir() or os.path.realpath(folder) != str(place):
            raise DamagedFolderError("it is no folder any more")

    def reason(self, characters: int) -> str | None:
        """What the job says of its failure; None where it does not."""
        with contextlib.suppress(OSError):
            if self.failure.is_file():
                with self.failure.open(encoding="utf-8", errors="replace") as file:
                    return file.read(characters)
        return None

    def mapped(self, value: str) -> str:
        """A path under ``/opt/ml`` as it is called here; other values unchanged."""
        if value == CONTAINER_ROOT or value.startswith(f"{CONTAINER_ROOT}/"):
            return str(self.root) + value.removeprefix(CONTAINER_ROOT)
        return value

    def write_config(self, request: dict[str, Any], hyperparameters: Mapping[str, str]) -> None:
        """The three JSON files that SageMaker writes into ``input/config``."""
        channels = {
            channel["ChannelName"]: {
                "TrainingInputMode": "File",
                "S3DistributionType": "FullyReplicated",
                "RecordWrapperType": channel.get("RecordWrapperType", "None"),
            }
            for channel in request.get("InputDataConfig") or []
        }
        values = dict(hyperparameters)
        if SUBMITTED in values:  # JSON text; of a job in network isolation a channel's path
            values[SUBMITTED] = values[SUBMITTED].replace(f'"{CONTAINER_ROOT}/', f'"{self.root}/')
        documents = {
            "hyperparameters.json": values,
            "inputdataconfig.json": channels,
            "resourceconfig.json": resource_config(request),
        }
        for name, document in documents.items():
            (self.config / name).write_text(json.dumps(document), encoding="utf-8")


def remove(root: Path) -> None:
    """Delete a job's folder, whatever the job made of it."""
    if root.is_symlink() or not root.is_dir():
        root.unlink(missing_ok=True)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(root, ignore_errors=True)
    if root.is_dir():  # parts of it deny access, or are too deep
        for words in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*words, "--", root], check=False, stderr=subprocess.DEVNULL)


def resource_config(request: dict[str, Any]) -> dict[str, Any]:
    """The cluster as the job sees it: always this one host."""
    instance_type = (request.get("ResourceConfig") or {}).get("InstanceType", "local")
    group = {"instance_group_name": "homogeneousCluster", "instance_type": instance_type}
    return {
        "current_host": HOSTS[0],
        "current_instance_type": instance_type,
        "current_group_name": "homogeneousCluster",
        "hosts": HOSTS,
        "instance_groups": [{**group, "hosts": HOSTS}],
        "network_interface_name": "lo",
    }


@dataclass(frozen=True)
class Command:
    """What starts a job: an interpreter of the job's own, and the program that it runs."""

    interpreter: Interpreter
    program: Path


def command(settings: Settings, layout: Layout) -> Command:
    """The toolkit's start command.

    Raises JobFailedError where the toolkit is not installed.
    """
    folder = settings.toolkit / "bin" if settings.toolkit else settings.job_python.parent
    program = folder / "train"
    if not program.is_file():
        raise JobFailedError(
            f"InternalServerError: {program} is missing, SageMaker's container toolkit. Run "
            "`make setup`, or install requirements/training.lock."
        )
    return Command(own_interpreter(settings.job_python, layout.packages), program)


def has_torchrun(settings: Settings) -> bool:
    """Whether the jobs' environment has PyTorch's launcher."""
    return (settings.job_python.parent / "torchrun").is_file()


def environment(job: TrainingJob, layout: Layout, settings: Settings) -> dict[str, str]:
    """What the container's first process sees, the request's own Environment last."""
    variables = inherited(settings) | _container(job, layout) | _platform(job)
    requested = job.request.get("Environment") or {}
    return variables | {name: layout.mapped(value) for name, value in requested.items()}


def inherited(settings: Settings) -> dict[str, str]:
    """What every job's processes have of the emulator's own variables, and where they import."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    kept |= {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": str(THREADS)}
    kept["TORCHINDUCTOR_COMPILE_THREADS"] = str(measuring_cores(settings.slots))
    kept[RUN_VARIABLE] = os.environ.get(RUN_VARIABLE, "")
    return kept | ({"PYTHONPATH": str(settings.toolkit)} if settings.toolkit else {})


def _container(job: TrainingJob, layout: Layout) -> dict[str, str]:
    image = str(job.request["AlgorithmSpecification"].get("TrainingImage", ""))
    repository = image.rpartition("/")[2]
    pytorch = not any(name in repository for name in _OTHER_FRAMEWORKS)
    return {
        **({"SAGEMAKER_TRAINING_MODULE": _PYTORCH} if pytorch else {}),
        "SAGEMAKER_BASE_DIR": str(layout.root),
        "PATH": f"{layout.packages / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        # Where torchrun's processes meet: every job has this machine's ports, not its own.
        "PET_MASTER_PORT": str(free_port()),
        # Only SageMaker's network knows the name algo-1; the toolkit would wait for it.
        "SM_STUDIO_LOCAL_MODE": "True",
        "TMPDIR": str(layout.temporary),
        "MKL_NUM_THREADS": str(THREADS),
        # What Python 3.13 and later report to the toolkit and to the script.
        "PYTHON_CPU_COUNT": str(THREADS),
    }


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _platform(job: TrainingJob) -> dict[str, Any]:
    return {
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        "AWS_REGION": job.region,
        "AWS_DEFAULT_REGION": job.region,
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        **role_credentials(job.request["RoleArn"], job.region),
        "NO_PROXY": "127.0.0.1",
        JOB_VARIABLE: job.name,
    }


def missing_launchers(
    hyperparameters: Mapping[str, str], *, instances: int, torchrun: bool
) -> dict[str, str]:
    """The launchers that a job asks for and cannot have here: hyperparameter to name."""
    missing = {key: name for key, name in _LAUNCHERS.items() if _on(hyperparameters.get(key))}
    if instances == 1 and torchrun:
        missing.pop(TORCHRUN, None)
    return missing


def _on(value: str | None) -> bool:
    try:
        return bool(json.loads(value)) if value else False
    except ValueError:
        return True  # text that is not JSON counts as it is, and is not empty
