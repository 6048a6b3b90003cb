"""Two SageMaker hosts on this machine, each with AWS's own container toolkit as its first command.

Each host has mounts, processes, a name and an /opt/ml of its own; both share one loopback network
that nothing else is on. The toolkit may start sshd on port 22 and write to /etc there.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.training import namespaces
from tests.training.jobs import PYTHON, TRAINING
from tests.training.namespaces import Namespace

ADDRESSES = {"algo-1": "127.0.0.11", "algo-2": "127.0.0.12"}
# Folders that a host writes to outside of /opt/ml.
PRIVATE = ("/etc", "/opt", "/root", "/run", "/tmp", "/var/log")
DRIVER = Path(__file__).with_name("hosts_driver.py")
MARK = "COMPILEGATE_TEST_HOSTS"  # a variable of every process of a job
# Its runner by MPI sleeps half a minute at a time where a host waits for another. Of torch, which
# takes seconds to import, it asks the version alone, of boto3 a region.
TRAIN = """
import importlib.metadata, sys, time, types
for name in "torch", "boto3", "boto3.s3", "boto3.s3.transfer", "invoke":
    sys.modules[name] = types.ModuleType(name)
session = types.SimpleNamespace(region_name=None)
sys.modules["boto3"].session = types.SimpleNamespace(Session=lambda: session)
sys.modules["torch"].__version__ = importlib.metadata.version("torch")
from sagemaker_training import mpi
from sagemaker_training.cli.train import main
mpi.time = types.SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(min(seconds, 1)))
main()
"""
SSHD = """\
ListenAddress {address}
HostKey /root/.ssh/id_ed25519
PermitRootLogin yes
UsePAM yes
"""


@dataclass(frozen=True)
class HostsRun:
    """How a job ended: by host, exit status (None: ended with the job), log and /opt/ml."""

    status: Mapping[str, int | None]
    folders: Mapping[str, Path]
    logs: Mapping[str, str]
    seconds: float
    left: list[str]  # processes of the job that were alive after it

    @property
    def log(self) -> str:
        """What the first host printed, to which mpirun brings all the others' lines."""
        return self.logs["algo-1"]

    def evidence(self, part: str = "") -> dict[str, Any]:
        """The job's summary, or that of one segment."""
        path = self.folders["algo-1"] / "output" / "data" / "evidence" / part / "summary.json"
        summary: dict[str, Any] = json.loads(path.read_text())
        return summary

    @property
    def failure(self) -> str:
        """What SageMaker would read as the first host's reason."""
        return (self.folders["algo-1"] / "output" / "failure").read_text()


@functools.cache
def obstacle(*, mpi: bool) -> str | None:
    """Why no such hosts can be had here, None if they can."""
    if os.geteuid() != 0:
        return "only root can start sshd on a host of its own"
    missing = [
        name for name in ("mpirun", "ssh", "/usr/sbin/sshd") if mpi and not shutil.which(name)
    ]
    if missing:
        return f"{', '.join(missing)} is missing (Debian: openmpi-bin, openssh-server)"
    modules = "sagemaker_training, sagemaker_pytorch_container" + (", mpi4py" if mpi else "")
    if (
        not PYTHON.exists()
        or subprocess.run([PYTHON, "-c", f"import {modules}"], check=False).returncode
    ):
        return f"the training environment lacks one of {modules}; run make setup"
    reason = namespaces.obstacle(PRIVATE)
    return reason and f"no namespaces: {reason}"


def run_hosts(
    folder: Path,
    request: Mapping[str, Any],
    channels: Mapping[str, Path],
    *,
    processes: int,
    scripts: tuple[Path, ...] = (),
    limit: float,
) -> HostsRun:
    """Run the CreateTrainingJob request on both hosts with so many processes on each.

    Raises TimeoutExpired when it has not ended after ``limit`` seconds.
    """
    key = ssh_key(folder)
    folders = {host: folder / host for host in ADDRESSES}
    plan = []
    for host, place in folders.items():
        write_container(place, host, request, channels, processes)
        for script in scripts:
            shutil.copy(script, place / "code")
        log, scratch = folder / f"{host}.log", folder / f"{host}.scratch"
        scratch.mkdir()
        space = Namespace(
            scratch, host, network=False, private=PRIVATE, mounted={"/opt/ml": place},
            files=host_files(host, key),
        )  # fmt: skip
        plan.append(
            {"log": str(log), "words": namespaces.command(space, [str(PYTHON), "-c", TRAIN])}
        )
    network = Namespace(folder, "network", network=True)
    mark = f"{MARK}={folder}"
    began = time.monotonic()
    done = subprocess.run(
        namespaces.command(network, [sys.executable, str(DRIVER), json.dumps(plan)]),
        env=environment(request, mark), stdout=subprocess.PIPE, text=True, timeout=limit,
        check=True,
    )  # fmt: skip
    seconds = time.monotonic() - began
    status = dict(zip(ADDRESSES, json.loads(done.stdout), strict=True))
    logs = {host: (folder / f"{host}.log").read_text(errors="replace") for host in ADDRESSES}
    return HostsRun(status, folders, logs, seconds, processes_marked(mark))


def ssh_key(folder: Path) -> tuple[str, str]:
    """A key pair that both hosts share, as in an image: private, public."""
    path = folder / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.read_text(), path.with_suffix(".pub").read_text()


def host_files(host: str, key: tuple[str, str]) -> dict[str, str]:
    """What an image for several hosts brings for them to reach each other."""
    names = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
    return {
        "/etc/hosts": "127.0.0.1 localhost\n" + names,
        "/etc/environment": "",
        "/etc/ssh/sshd_config": SSHD.format(address=ADDRESSES[host]),
        "/run/sshd/.keep": "",
        "/root/.ssh/id_ed25519": key[0],
        "/root/.ssh/authorized_keys": key[1],
        "/root/.ssh/config": "Host *\n  StrictHostKeyChecking no\n",
    }


def environment(request: Mapping[str, Any], mark: str) -> dict[str, str]:
    """The container's variables: the image's, the platform's, the request's."""
    return {
        "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PYTHONUNBUFFERED": "1",  # as in AWS's PyTorch images
        "OMP_NUM_THREADS": "1",
        "SAGEMAKER_TRAINING_MODULE": "sagemaker_pytorch_container.training:main",
        "TRAINING_JOB_NAME": request["TrainingJobName"],
        "AWS_REGION": "us-east-1",
        **request["Environment"],
        **dict([mark.split("=", 1)]),
    }


def processes_marked(mark: str) -> list[str]:
    """The processes of this machine that have the variable."""
    collected = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                collected.append(path.parent.name)
    return collected


def write_container(
    place: Path, host: str, request: Mapping[str, Any], channels: Mapping[str, Path], processes: int
) -> None:
    """One host's /opt/ml: configuration, channels, and the code that the toolkit would unpack."""
    for name in ("input/config", "input/data", "model", "output/data", "checkpoints"):
        (place / name).mkdir(parents=True)
    for name, folder in channels.items():
        shutil.copytree(folder, place / "input" / "data" / name)
    shutil.copytree(TRAINING, place / "code")
    # There is no GPU to count, so the number of processes is said as for MPI.
    values = {
        **request["HyperParameters"],
        "sagemaker_mpi_num_of_processes_per_host": str(processes),
    }
    hosts = list(ADDRESSES)
    instance = request["ResourceConfig"]["InstanceType"]
    group = {"instance_group_name": "homogeneousCluster", "instance_type": instance, "hosts": hosts}
    mode = {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated"}
    documents = {
        "hyperparameters": values,
        "inputdataconfig": {name: {**mode, "RecordWrapperType": "None"} for name in channels},
        "resourceconfig": {
            "current_host": host, "current_instance_type": instance, "hosts": hosts,
            "current_group_name": "homogeneousCluster", "instance_groups": [group],
            "network_interface_name": "lo",
        },
    }  # fmt: skip
    for name, document in documents.items():
        (place / "input" / "config" / f"{name}.json").write_text(json.dumps(document))
