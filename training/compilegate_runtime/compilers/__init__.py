"""Graph compilers behind one small interface; each proves that it was applied.

    forward = compiler.apply(model)      call this instead of the model
    compiler.reduce(optimizer)           before gradients are clipped, if they are
    compiler.step(optimizer)             instead of optimizer.step(); with the scaler under fp16
    compiler.save(state, path)           instead of torch.save(state, path), in every process

The rest is the recorder's: what was compiled, how long it took, and whether it happened at all.
"""

import importlib.util

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.compilers.tensorflow import TensorFlowXla
from compilegate_runtime.compilers.torch_compile import TorchCompile
from compilegate_runtime.compilers.xla import REQUESTED as MANAGED
from compilegate_runtime.compilers.xla import XlaCompiler
from compilegate_runtime.errors import HyperparameterError

__all__ = ["MANAGED", "NoCompiler", "TorchCompile", "compiler_for"]


def compiler_for(name, mode="default", dynamic="auto", *, optimizer=False, regions=""):
    """The backend of one hyperparameter value; the others say how torch.compile compiles.

    Raises CompilerUnavailableError when this environment lacks it, HyperparameterError for a mode
    without its compiler.
    """
    if mode != "default" and name != "torch_compile":
        raise HyperparameterError(
            f"compile_mode {mode} belongs to compiler torch_compile and would not be applied to "
            f"compiler {name}"
        )
    if name == "torch_compile":
        return TorchCompile(mode, dynamic, optimizer=optimizer, regions=regions)
    if name == MANAGED:
        only_tensorflow = _has("tensorflow") and not _has("torch")
        return TensorFlowXla() if only_tensorflow else XlaCompiler()
    return NoCompiler()


def _has(package):
    return importlib.util.find_spec(package) is not None
