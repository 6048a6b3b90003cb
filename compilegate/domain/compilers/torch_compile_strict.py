"""torch.compile that rounds as eager PyTorch does, where fused kernels would round less often.

Half-precision values between fused operations are rounded at each step, as eager PyTorch rounds
them, and divisions are exact. It costs some of the speed-up and takes a cause of differing quality
away. The option is TorchInductor's ``emulate_precision_casts``
(https://github.com/pytorch/pytorch/pull/131595, July 2024).
"""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import Compiler
from compilegate.domain.compilers.torch_compile import TORCH_COMPILE

COMPILER = Compiler(
    name="torch_compile_strict",
    rank=2,
    title="torch.compile with eager numerics",
    kind="pytorch",
    since=(2, 6),
    source="https://github.com/pytorch/pytorch/pull/131595",
    assumed_as=TORCH_COMPILE,
)
