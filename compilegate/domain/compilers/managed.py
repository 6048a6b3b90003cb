"""SageMaker Training Compiler, which exists only inside AWS's images of a few versions.

Its images, instance families and state stand in compilegate/facts/compiler_versions.json.
"""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import (
    CompileOverhead,
    Compiler,
    ComputeSpeedup,
    Launching,
    Proposal,
)

MANAGED_COMPILER = "sagemaker_training_compiler"
COMPILER = Compiler(
    name=MANAGED_COMPILER,
    rank=1,
    title="SageMaker Training Compiler",
    proof="graphs that XLA compiled, by the counters of PyTorch/XLA or TensorFlow",
    keeps_cache=False,
    own_image=True,
    overheads=(
        CompileOverhead(
            family=None,
            warm_seconds=900,
            cold_seconds=900,
            as_of="2026-11-20",
            basis="assumption: the managed compiler keeps no cache between jobs, so every run pays "
            "it, and its documentation calls the first steps slow without a figure",
        ),
    ),
    compute_speedup=ComputeSpeedup(
        low=1.0,
        high=1.5,
        as_of="2026-11-20",
        basis="assumption: the launch announcement claims up to 50 %; the documentation publishes "
        "no table of speed-ups",
    ),
    examined_as=(MANAGED_COMPILER,),
    proposal=Proposal(
        "managed-compiler",
        "the managed compiler has an image of these versions and needs no script changes",
    ),
    # awsdocs training-compiler-enable-pytorch.md.
    launching=Launching(
        switches={
            "sagemaker_training_compiler_enabled": True,
            "sagemaker_training_compiler_debug_mode": False,
        },
        distribution="pytorchxla",
    ),
)
