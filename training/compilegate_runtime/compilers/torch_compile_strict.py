"""torch.compile that rounds as eager PyTorch does, in kernels that fuse several operations."""

from compilegate_runtime.compilers.torch_compile import TorchCompile
from compilegate_runtime.errors import CompilerUnavailableError

# TorchInductor's: half-precision values between fused operations are rounded at each step.
OPTION = "emulate_precision_casts"


class TorchCompileStrict(TorchCompile):
    """As TorchCompile, proven in the same way, with TorchInductor's eager rounding."""

    name, modes = "torch_compile_strict", ()

    def __init__(self, dynamic="auto", optimizer=False, regions=""):
        super().__init__(
            dynamic=dynamic, optimizer=optimizer, regions=regions, options={OPTION: True}
        )
        from torch._inductor import config  # noqa: PLC0415 — only compiled jobs pay for it

        if not hasattr(config, OPTION):
            raise CompilerUnavailableError(
                f"compiler {self.name} needs a PyTorch whose TorchInductor has {OPTION} (2.6 or "
                f"later); this one is {self._torch.__version__}"
            )

    @classmethod
    def create(cls, settings):
        """The backend of a job's ``Settings``, which have no mode."""
        return cls(settings.dynamic, settings.optimizer, settings.regions)


COMPILER = TorchCompileStrict
