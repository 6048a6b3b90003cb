"""Starts a speed job's segment on every GPU under the managed compiler's PyTorch.

A whole job is started by the launcher in its image. A speed job starts its segments itself, so it
runs as one plain process per host and calls the same launchers for each segment. Sources:
``pytorch_xla.py`` of aws/sagemaker-training-toolkit@3383937 for the runner's command and variables,
awsdocs/amazon-sagemaker-developer-guide training-compiler-enable-pytorch.md for ``sm_dist``.
"""

import json
import os

WORKER_PORT = 43857
MESH_SERVICE_PORT = 53957
LAUNCHERS = ("none", "xla_spawn", "sm_dist")


def words(launcher, program):
    """What follows the interpreter: the launcher and the program, or the program alone."""
    if launcher == "xla_spawn":
        gpus = os.environ["SM_NUM_GPUS"]
        return ["-m", "torch_xla.distributed.xla_spawn", "--num_gpus", gpus, program]
    if launcher == "sm_dist":
        return ["-m", "torch_xla.distributed.sm_dist", "--training_script", program]
    return [program]


def variables(launcher):
    """What the toolkit's runner would set; ``sm_dist`` sets up the nodes itself."""
    if launcher != "xla_spawn":
        return {}
    hosts, gpus = json.loads(os.environ["SM_HOSTS"]), os.environ["SM_NUM_GPUS"]
    workers = [f"localservice:{index};{host}:{WORKER_PORT}" for index, host in enumerate(hosts)]
    found = {
        "GPU_NUM_DEVICES": gpus,
        "XRT_HOST_ORDINAL": str(hosts.index(os.environ["SM_CURRENT_HOST"])),
        "XRT_SHARD_WORLD_SIZE": str(len(hosts)),
        "XRT_WORKERS": "|".join(workers),
        "NCCL_PROTO": "simple",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        "OFI_NCCL_NIC_DUP_CONNS": gpus,
    }
    if len(hosts) > 1:
        found["XRT_MESH_SERVICE_ADDRESS"] = f"{hosts[0]}:{MESH_SERVICE_PORT}"
    return found
