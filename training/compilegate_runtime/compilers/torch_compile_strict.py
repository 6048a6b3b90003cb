"""torch.compile that rounds as eager PyTorch does, in kernels that fuse several operations."""

from compilegate_runtime.compilers.torch_compile import TorchCompile
from compilegate_runtime.errors import CompilerUnavailableError

REQUESTED = "torch_compile_strict"
# TorchInductor's: half-precision values between fused operations are rounded at each step.
OPTION = "emulate_precision_casts"


class TorchCompileStrict(TorchCompile):
    """As TorchCompile, proven in the same way, with TorchInductor's eager rounding."""

    def __init__(self, dynamic="auto", optimizer=False, regions=""):
        super().__init__(
            dynamic=dynamic, optimizer=optimizer, regions=regions, requested=REQUESTED,
            options={OPTION: True},
        )  # fmt: skip
        from torch._inductor import config  # noqa: PLC0415 — only compiled jobs pay for it

        if not hasattr(config, OPTION):
            raise CompilerUnavailableError(
                f"compiler {REQUESTED} needs a PyTorch whose TorchInductor has {OPTION} (2.6 or "
                f"later); this one is {self._torch.__version__}"
            )


def create(settings):
    """The backend of a job's settings; there are no modes."""
    return TorchCompileStrict(settings.dynamic, settings.optimizer, settings.regions)
