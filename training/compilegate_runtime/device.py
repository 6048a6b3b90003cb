"""The device a job trains on: its name, how to wait for it, how to count its memory."""

import contextlib
import os
import resource
import sys

from compilegate_runtime.compilers import fp8
from compilegate_runtime.errors import HyperparameterError, NotAppliedError
from compilegate_runtime.timing import CudaTimer, HostTimer

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8")
# What these scripts cannot do is refused: a run in another precision would be a silent baseline.
NOT_HERE = {
    "fp16": "these scripts do not scale gradients, which fp16 needs; use bf16",
}


class Processor:
    """The CPU of a job that needs no torch."""

    is_gpu = False
    torch_version = cuda_version = None
    name = "cpu"

    def __init__(self, precision="fp32"):
        if precision != "fp32":
            raise NotAppliedError(
                f"precision {precision} was asked for and not applied: this script has no tensors "
                "that it could change; use fp32"
            )
        self.threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)

    def timer(self, clock):
        """What times this device's steps; ``clock`` is the processor's."""
        return HostTimer(clock)

    def synchronize(self):
        """Return when all work is done; a CPU works at once."""

    def peak_memory_gib(self):
        """Largest resident memory of this process so far."""
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


class TorchDevice(Processor):
    """The GPU if there is one, else the CPU, with the precision that the job asks for."""

    fuses_optimizer = True  # has an optimizer step of one kernel

    def __init__(self, precision):
        super().__init__()
        if precision in NOT_HERE:
            raise NotAppliedError(
                f"precision {precision} was asked for and not applied: {NOT_HERE[precision]}"
            )
        import torch  # noqa: PLC0415 — jobs without torch use this module too

        self.torch = torch
        self.torch_version = torch.__version__
        self.cuda_version = torch.version.cuda
        self.is_gpu = torch.cuda.is_available()
        self.kind = "cuda" if self.is_gpu else "cpu"
        self.precision = precision
        if self.is_gpu:
            self.name = torch.cuda.get_device_name()
        elif os.environ.get("OMP_NUM_THREADS"):
            torch.set_num_threads(self.threads)
        else:
            self.threads = torch.get_num_threads()
        if precision == "tf32" and not self.is_gpu:
            raise HyperparameterError("precision tf32 exists on GPUs only; use fp32 or bf16")
        if precision == "fp8":
            fp8.check(torch)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"

    def convert(self, module):
        """Give the module the layers that its precision needs; before it is compiled."""
        if self.precision == "fp8":
            print(f"compilegate fp8_layers={fp8.convert(module)}", flush=True)
        return module

    def autocast(self):
        """Context in which the forward pass runs."""
        if self.precision in ("bf16", "fp8"):  # what fp8 layers leave is bf16's
            return self.torch.autocast(self.kind, dtype=self.torch.bfloat16)
        return contextlib.nullcontext()

    def timer(self, clock):
        """Events in the GPU's own queue, or the processor's clock."""
        return CudaTimer(self.torch) if self.is_gpu else super().timer(clock)

    def synchronize(self):
        """Return when all work is done."""
        if self.is_gpu:
            self.torch.cuda.synchronize()

    def peak_memory_gib(self):
        """Largest memory that tensors took on the GPU, or the process on a CPU."""
        if self.is_gpu:
            return self.torch.cuda.max_memory_allocated() / 2**30
        return super().peak_memory_gib()
