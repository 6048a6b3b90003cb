"""The processes that train together: their ranks and what they exchange."""

import contextlib
import datetime
import json
import os

import torch
from compilegate_runtime import environment
from torch import distributed

# The first process of a machine may tokenise for long while the others wait for it.
TIMEOUT = datetime.timedelta(hours=2)
SMDDP = "sagemaker_distributed_dataparallel_enabled"


class Processes:
    """Joins the processes that the job's launcher started; one process needs no joining.

    PyTorch/XLA's processes know each other by themselves, and the compiler's step sums their
    gradients.
    """

    def __init__(self, job):
        self.rank, self.count = environment.rank(), environment.world_size()
        self._device = job.device
        self._joined = self.count > 1 and not job.compiler.on_xla
        self.local = int(
            os.environ.get("LOCAL_RANK") or os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK") or 0
        )
        if self._joined and not distributed.is_initialized():
            self._join(job.device)

    def _join(self, device):
        hosts = json.loads(os.environ.get("SM_HOSTS", "[]"))  # some set MPI's variables alone
        for name, value in {
            "RANK": self.rank,
            "WORLD_SIZE": self.count,
            "MASTER_ADDR": hosts[0] if hosts else "127.0.0.1",
            "MASTER_PORT": 29500,
        }.items():
            os.environ.setdefault(name, str(value))
        backend = "nccl" if device.is_gpu else "gloo"
        if device.is_gpu:
            torch.cuda.set_device(self.local)
        if json.loads(os.environ.get("SM_FRAMEWORK_PARAMS") or "{}").get(SMDDP):
            import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401, PLC0415 — its image only

            backend = "smddp"
        distributed.init_process_group(backend, timeout=TIMEOUT)

    def share(self, indices):
        """This process's part of the whole job's batch; one process has it all."""
        return indices[self.rank :: self.count]

    def part(self, indices):
        """What this process evaluates: its share where ``summed`` adds them up, else all of it."""
        return self.share(indices) if self._joined else indices

    def wrap(self, model):
        """Let the processes average their gradients."""
        if not self._joined:
            return model
        devices = [self.local] if self._device.is_gpu else None
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)

    def summed(self, *values):
        """Each value summed over the processes."""
        if not self._joined:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64, device=self._device.kind)
        distributed.all_reduce(sums)
        return sums.tolist()

    def together(self, values, places, count):
        """A list of ``count``: each value at its place, also those of the other processes."""
        device = self._device.kind if self._joined else None
        whole = torch.zeros(count, dtype=torch.float64, device=device)
        whole[places] = torch.tensor(values, dtype=torch.float64, device=device)
        if self._joined:
            distributed.all_reduce(whole)
        return whole.tolist()

    @contextlib.contextmanager
    def first_of_machine(self):
        """Let the first process of each machine through before its others."""
        if self._joined and self.local:
            distributed.barrier()
        yield
        if self._joined and not self.local:
            distributed.barrier()
