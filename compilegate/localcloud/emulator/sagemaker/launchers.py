"""Which of the container toolkit's launchers can start a job's processes on this machine.

Several hosts are one process here, and the launchers by MPI and for XLA expect a machine to
themselves. A job that asks for one of those starts without it, and its log says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

TORCHRUN = "sagemaker_torch_distributed_enabled"
# What sagemaker-pytorch-training and sagemaker-training look for (``training.py``, ``trainer.py``).
_LAUNCHERS = {
    TORCHRUN: "torchrun",
    "sagemaker_mpi_enabled": "MPI",
    "sagemaker_pytorch_ddp_enabled": "pytorchddp",
    "sagemaker_distributed_dataparallel_enabled": "smdistributed's data parallel",
    "sagemaker_pytorch_xla_multi_worker_enabled": "PyTorch XLA",
}


def left_out(
    hyperparameters: Mapping[str, str], *, instances: int, torchrun: bool
) -> dict[str, str]:
    """The launchers that a job asks for and cannot have here: hyperparameter to name."""
    asked = {key: name for key, name in _LAUNCHERS.items() if _on(hyperparameters.get(key))}
    if instances == 1 and torchrun:
        asked.pop(TORCHRUN, None)
    return asked


def _on(value: str | None) -> bool:
    try:
        return bool(json.loads(value)) if value else False
    except ValueError:
        return True  # text that is not JSON is taken as it stands, and is not empty
