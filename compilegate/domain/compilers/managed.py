"""SageMaker Training Compiler, which exists only inside AWS's images of a few versions.

Its images, instance families and state stand in compilegate/facts/compiler_versions.json.
"""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import Compiler, Launching, Proposal

MANAGED_COMPILER = "sagemaker_training_compiler"
COMPILER = Compiler(
    name=MANAGED_COMPILER,
    rank=1,
    title="SageMaker Training Compiler",
    keeps_cache=False,
    own_image=True,
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
