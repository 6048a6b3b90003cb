"""The folders and names that SageMaker hands to a job through environment variables."""

import os
import socket
import tempfile
import time
from pathlib import Path

from compilegate_runtime.errors import DataError

ROOT = "/opt/ml"  # of a job's folders, in a container
NO_CHECKPOINTS = ("none", "")  # values of COMPILEGATE_CHECKPOINT_DIR


def evidence_folder():
    """Where this process leaves its evidence; the speed gate gives each segment its own.

    Of the processes that a launcher starts only the first one's evidence is the job's.
    """
    if rank():
        return Path(tempfile.gettempdir()) / "compilegate-rank-{}".format(rank())
    chosen = os.environ.get("COMPILEGATE_EVIDENCE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("SM_OUTPUT_DATA_DIR", "output/data")) / "evidence"


def failure_file():
    """Where the reason of a failure goes, or None outside a training job."""
    if os.environ.get("SM_OUTPUT_FAILURE"):
        return Path(os.environ["SM_OUTPUT_FAILURE"])
    folder = Path(os.environ.get("SM_OUTPUT_DIR", "/opt/ml/output"))
    return folder / "failure" if folder.is_dir() else None


def write_failure(reason):
    """Leave ``reason`` where SageMaker reads a job's failure reason (1,024 characters of it)."""
    path = failure_file()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reason[:1024])


def channel(name):
    """Folder of an input channel. Raises DataError when the job has no such channel."""
    folder = os.environ.get("SM_CHANNEL_" + name.upper())
    if not folder or not Path(folder).is_dir():
        raise DataError(
            f"input channel {name!r} is missing: name it under training.inputs, or set "
            f"SM_CHANNEL_{name.upper()} to a folder that exists"
        )
    return Path(folder)


def channels():
    """All input channels of the job, by name."""
    prefix = "SM_CHANNEL_"
    return {
        key[len(prefix) :].lower(): Path(value)
        for key, value in sorted(os.environ.items())
        if key.startswith(prefix)
    }


def model_folder():
    """Where the trained model goes, or None outside a training job."""
    folder = os.environ.get("SM_MODEL_DIR")
    return Path(folder) if folder else None


def checkpoint_folder():
    """What SageMaker copies to S3 while the job runs, and back; None where there is none.

    A job whose checkpoints are not copied says so by ``none`` (or an empty variable): its folder
    exists nevertheless, because the compile cache lies in it.
    """
    place = os.environ.get("COMPILEGATE_CHECKPOINT_DIR", "/opt/ml/checkpoints")
    if place in NO_CHECKPOINTS or not Path(place).is_dir():
        return None
    return Path(place).resolve()


def own_path(value):
    """A path of a job as it is called here, where it is not ``/opt/ml``; other values unchanged."""
    place = os.environ.get("SM_INPUT_DIR")
    text = str(value)
    if not place or not (text == ROOT or text.startswith(ROOT + "/")):
        return text
    return str(Path(place).parent) + text[len(ROOT) :]


def try_steps():
    """Optimizer steps after which ``compilegate try`` lets a run come to its end; 0 in a job."""
    return int(os.environ.get("COMPILEGATE_TRY_STEPS") or 0)


def job_name():
    """Name of the training job, or None outside one."""
    return os.environ.get("TRAINING_JOB_NAME") or None


def node():
    """What tells machines apart: speed is only compared on equal nodes."""
    return socket.gethostname()


def rank():
    """Number of this process among those that train together, by torchrun or by MPI."""
    return int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or 0)


def world_size():
    """Processes that train together."""
    return int(os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE") or 1)


def process_age_seconds():
    """Seconds since this process started, imports included; None where the kernel hides it."""
    try:
        started = float(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, IndexError, ValueError):
        return None
