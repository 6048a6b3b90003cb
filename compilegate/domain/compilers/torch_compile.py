"""torch.compile with TorchInductor, the compiler that is part of PyTorch."""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import Compiler, Proposal

TORCH_COMPILE = "torch_compile"
COMPILER = Compiler(
    name=TORCH_COMPILE,
    rank=0,
    title="torch.compile",
    kind="pytorch",
    since=(2, 0),
    source="PyTorch documentation: torch.compile is part of PyTorch from 2.0",
    # torch.compile's own names (https://pytorch.org/docs/stable/generated/torch.compile.html).
    modes=("default", "reduce-overhead", "max-autotune"),
    proposal=Proposal(
        "compile",
        "the compiler alone at the same batch: isolates the effect of compiling",
    ),
)
