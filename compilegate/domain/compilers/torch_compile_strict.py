"""torch.compile that rounds as eager PyTorch does, where fused kernels would round less often.

Half-precision values between fused operations are rounded at each step, as eager PyTorch rounds
them, and divisions are exact. It costs some of the speed-up and takes a cause of differing quality
away. The option is TorchInductor's ``emulate_precision_casts``
(https://github.com/pytorch/pytorch/pull/131595, July 2024).
"""

from __future__ import annotations

from dataclasses import replace

from compilegate.domain.compilers import torch_compile

COMPILER = replace(
    torch_compile.COMPILER,
    name="torch_compile_strict",
    rank=2,
    title="torch.compile with eager numerics",
    since=(2, 6),
    source="https://github.com/pytorch/pytorch/pull/131595",
    modes=(),
    variant_of=torch_compile.TORCH_COMPILE,
    proposal=None,
)
