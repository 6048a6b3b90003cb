"""One segment's processes: how they are started, where they meet, what they print, how they end.

Under the managed compiler, an image's launcher starts a whole job on every GPU. A speed job runs as
one plain process per host and calls the same launcher for each segment. Sources: ``pytorch_xla.py``
of aws/sagemaker-training-toolkit@3383937 for the runner's command and variables,
awsdocs/amazon-sagemaker-developer-guide training-compiler-enable-pytorch.md for ``sm_dist``.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading

SEGMENT_TIMEOUT_SECONDS = 3600  # less than the job's own time limit
LINES_KEPT = 15
DEFAULT_PORT = 29500  # torch's own, where the launcher names none
# Seconds that a segment has after SIGTERM to save its evidence: SageMaker gives the job 120, but
# torchrun kills its processes after 30.
STOP_SECONDS = 25
# What mpirun puts before each line of a process, see domain/request/build.py.
TAG = re.compile(r"\[[^\]]*\]<(?:stdout|stderr)>: ?")
WORKER_PORT = 43857
MESH_SERVICE_PORT = 53957
LAUNCHERS = ("none", "xla_spawn", "sm_dist")
PROGRESS, FAILED = "compilegate ", "compilegate failed: "


def rendezvous(variables, place):
    """Where the processes of one segment meet, if a launcher has started several of this gate.

    A store outlives its segment, and the next one would take its keys for its own and wait for
    processes that are gone. Torchrun's store lives as long as the job; under MPI the first
    process keeps the store, and ends later than the others. So each segment's first process
    opens a store at a port of the segment's own.
    """
    torchrun = "TORCHELASTIC_USE_AGENT_STORE" in variables
    if not torchrun and int(variables.get("OMPI_COMM_WORLD_SIZE") or 1) < 2:
        return {}
    port = int(variables.get("MASTER_PORT") or DEFAULT_PORT) + 1 + place
    first = 1024
    own = {"MASTER_PORT": str(port if port < 65536 else first + port % 65536)}
    return {**own, "TORCHELASTIC_USE_AGENT_STORE": "False"} if torchrun else own


def follow(command, variables, folder, on_progress):
    """Run a process, hand its progress on, print its other lines; return exit code and last lines.

    ``on_progress`` gets each line of progress without its ``compilegate``.
    """
    process = subprocess.Popen(  # noqa: S603 — the command is this interpreter and a checked file
        command,
        cwd=str(folder),
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    watch = threading.Timer(SEGMENT_TIMEOUT_SECONDS, end, [process])
    watch.start()
    lines = []
    try:
        for line in process.stdout:
            text = TAG.sub("", line.rstrip(), count=1) if line.startswith("[") else line.rstrip()
            lines = [*lines, text][-LINES_KEPT:]
            if text.startswith(PROGRESS) and not text.startswith(FAILED):
                on_progress(text[len(PROGRESS) :])
            else:
                sys.stdout.write(line)
        return process.wait(), lines
    finally:
        watch.cancel()
        end(process)  # this job is being stopped: let the segment save its evidence


def end(process):
    """End a process that still runs, by SIGKILL if it does not end in time after SIGTERM."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def why_it_failed(status, lines):
    """The reason of a failed segment whose first process left none."""
    reasons = [line[len(FAILED) :] for line in lines if line.startswith(FAILED)]
    if reasons:
        return reasons[0]
    how = f"exit code {status}"
    if status < 0:
        how = f"it was ended by {signal.Signals(-status).name}"
    return " | ".join([how, *lines])


def launcher_words(launcher, program):
    """What follows the interpreter: the launcher and the program, or the program alone."""
    if launcher == "xla_spawn":
        gpus = os.environ["SM_NUM_GPUS"]
        return ["-m", "torch_xla.distributed.xla_spawn", "--num_gpus", gpus, program]
    if launcher == "sm_dist":
        return ["-m", "torch_xla.distributed.sm_dist", "--training_script", program]
    return [program]


def launcher_variables(launcher):
    """What the toolkit's runner would set; ``sm_dist`` sets up the nodes itself."""
    if launcher != "xla_spawn":
        return {}
    hosts, gpus = json.loads(os.environ["SM_HOSTS"]), os.environ["SM_NUM_GPUS"]
    workers = [f"localservice:{index};{host}:{WORKER_PORT}" for index, host in enumerate(hosts)]
    own = {
        "GPU_NUM_DEVICES": gpus,
        "XRT_HOST_ORDINAL": str(hosts.index(os.environ["SM_CURRENT_HOST"])),
        "XRT_SHARD_WORLD_SIZE": str(len(hosts)),
        "XRT_WORKERS": "|".join(workers),
        "NCCL_PROTO": "simple",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        "OFI_NCCL_NIC_DUP_CONNS": gpus,
    }
    if len(hosts) > 1:
        own["XRT_MESH_SERVICE_ADDRESS"] = f"{hosts[0]}:{MESH_SERVICE_PORT}"
    return own
