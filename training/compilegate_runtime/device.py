"""The device a job trains on: its name, how to wait for it, how to count its memory."""

import contextlib
import os
import resource
import sys

from compilegate_runtime.compilers import fp8, xla
from compilegate_runtime.errors import HyperparameterError, NotAppliedError
from compilegate_runtime.progress import write_line
from compilegate_runtime.timing import CudaTimer, HostTimer, detached

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8")
# What autocast computes in; what fp8 layers leave is bf16's.
AUTOCAST = {"bf16": "bfloat16", "fp16": "float16", "fp8": "bfloat16"}


class Processor:
    """The CPU of a job that needs no torch."""

    is_gpu = False
    torch_version = cuda_version = None
    name = "cpu"

    def __init__(self, precision="fp32"):
        if precision != "fp32":
            raise NotAppliedError(
                f"precision {precision} was requested but not applied: this script has no tensors "
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


class ScriptsDevice(Processor):
    """The GPU if there is one, else the CPU; the script itself sees to its precision."""

    def __init__(self, precision):
        super().__init__()
        import torch  # noqa: PLC0415 — jobs without torch use this module too

        self.torch, self.precision = torch, precision
        self.torch_version, self.cuda_version = torch.__version__, torch.version.cuda
        self.is_gpu = torch.cuda.is_available()
        if self.is_gpu:
            self.name = torch.cuda.get_device_name()

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


class TorchDevice(ScriptsDevice):
    """The GPU if there is one, else the CPU, with the precision that the job asks for."""

    fuses_optimizer = True  # has an optimizer step of one kernel

    def __init__(self, precision):
        super().__init__(precision)
        torch = self.torch
        self.kind = "cuda" if self.is_gpu else "cpu"
        if not self.is_gpu and os.environ.get("OMP_NUM_THREADS"):
            torch.set_num_threads(self.threads)
        self.threads = torch.get_num_threads()
        if precision == "tf32" and not self.is_gpu:
            raise HyperparameterError("precision tf32 exists on GPUs only; use fp32 or bf16")
        if precision == "fp16" and not self.is_gpu:
            raise NotAppliedError(
                "precision fp16 was requested but not applied: it needs a GPU; use bf16"
            )
        if precision == "fp8":
            fp8.check(torch)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"

    def convert(self, module):
        """Give the module the layers that its precision needs; before it is compiled."""
        if self.precision == "fp8":
            write_line(f"compilegate fp8_layers={fp8.convert(module)}")
        return module

    def autocast(self):
        """Context in which the forward pass runs."""
        if self.precision in AUTOCAST:
            return self.torch.autocast(self.kind, getattr(self.torch, AUTOCAST[self.precision]))
        return contextlib.nullcontext()


class XlaDevice(Processor):
    """The device that PyTorch/XLA gives to this process."""

    fuses_optimizer = False
    is_gpu = False  # not through CUDA: NVML alone cannot tell which GPU is this process's

    def __init__(self, precision="fp32"):
        super().__init__()
        if precision not in ("fp32", "fp16", "bf16"):
            raise NotAppliedError(
                f"precision {precision} was requested but not applied: PyTorch/XLA casts to fp16 "
                "and bf16 only"
            )
        import torch  # noqa: PLC0415 — jobs without torch use this module too

        self.torch, self.precision = torch, precision
        self._model, _ = xla.modules()
        self.torch_version, self.cuda_version = torch.__version__, torch.version.cuda
        self.kind = self._model.xla_device()
        self.name = f"XLA {self._model.xla_device_hw(self.kind)}"

    def timer(self, clock):
        """The processor's clock; numbers are read late."""
        return HostTimer(clock, detached)

    def autocast(self):
        """Context in which the forward pass runs."""
        if self.precision == "fp32":
            return contextlib.nullcontext()
        from torch_xla.amp import autocast  # noqa: PLC0415 — exists in few images

        return autocast()

    def convert(self, module):
        """The module as it is: autocast changes its arithmetic."""
        return module

    def synchronize(self):
        """Return when all work is done."""
        self._model.wait_device_ops()

    def peak_memory_gib(self):
        """Memory of the device in use now: PyTorch/XLA keeps no peak."""
        memory = self._model.get_memory_info(self.kind)
        return (memory["kb_total"] - memory["kb_free"]) / 2**20
