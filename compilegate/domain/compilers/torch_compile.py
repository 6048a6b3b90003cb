"""torch.compile with TorchInductor, the compiler that is part of PyTorch."""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import (
    CompileOverhead,
    Compiler,
    ComputeSpeedup,
    Proposal,
)

TORCH_COMPILE = "torch_compile"
COMPILER = Compiler(
    name=TORCH_COMPILE,
    rank=0,
    title="torch.compile",
    proof="graphs that TorchDynamo handed to TorchInductor for what the arm compiles",
    kind="pytorch",
    since=(2, 0),
    source="PyTorch documentation: torch.compile is part of PyTorch from 2.0",
    # torch.compile's own names (https://pytorch.org/docs/stable/generated/torch.compile.html).
    modes=("default", "reduce-overhead", "max-autotune"),
    overheads=(
        CompileOverhead(
            family=None,
            warm_seconds=3,
            cold_seconds=300,
            as_of="2026-11-20",
            basis="assumption: 2 to 3 s from a warm cache and 10 to 70 s cold were measured on "
            "models of about one million parameters on CPU; minutes cold are reported for large "
            "models",
        ),
        CompileOverhead(
            family="diffusion",
            warm_seconds=5,
            cold_seconds=600,
            as_of="2026-11-20",
            basis="assumption: as for other models, doubled for the many distinct blocks of a UNet",
        ),
    ),
    compute_speedup=ComputeSpeedup(
        low=1.0,
        high=1.5,
        as_of="2026-11-20",
        basis="assumption: from no gain to the 50 % that vendors claim for the best case",
    ),
    examined_as=(TORCH_COMPILE,),
    proposal=Proposal(
        "compile",
        "the compiler alone at the same batch: isolates the effect of compiling",
    ),
)
