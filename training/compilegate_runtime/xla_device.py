"""The device of the managed compiler's PyTorch; compilers/xla.py says what is verified."""

import contextlib

from compilegate_runtime.compilers.xla import modules
from compilegate_runtime.device import Processor
from compilegate_runtime.errors import NotAppliedError
from compilegate_runtime.timing import QueuedHostTimer


class XlaDevice(Processor):
    """The device that PyTorch/XLA gives to this process."""

    fuses_optimizer = False
    is_gpu = False  # not through CUDA: NVML alone cannot tell which GPU is this process's

    def __init__(self, precision="fp32"):
        super().__init__()
        if precision not in ("fp32", "fp16", "bf16"):
            raise NotAppliedError(
                f"precision {precision} was asked for and not applied: PyTorch/XLA casts to fp16 "
                "and bf16 only"
            )
        import torch  # noqa: PLC0415 — jobs without torch use this module too

        self.torch, self.precision = torch, precision
        self._model, _ = modules()
        self.torch_version, self.cuda_version = torch.__version__, torch.version.cuda
        self.kind = self._model.xla_device()
        self.name = f"XLA {self._model.xla_device_hw(self.kind)}"

    def timer(self, clock):
        """The processor's clock; numbers are read late, see QueuedHostTimer."""
        return QueuedHostTimer(clock)

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
        told = self._model.get_memory_info(self.kind)
        return (told["kb_total"] - told["kb_free"]) / 2**20
