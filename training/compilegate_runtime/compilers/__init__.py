"""Graph compilers behind one small interface; each proves that it was applied.

    forward = compiler.apply(model)      call this instead of the model
    compiler.reduce(optimizer)           before gradients are clipped, if they are
    compiler.step(optimizer)             instead of optimizer.step(); with the scaler under fp16
    compiler.save(state, path)           instead of torch.save(state, path), in every process

The rest is the recorder's: what was compiled, how long it took, and whether it happened at all.

A module of this folder is a compiler where it has ``REQUESTED``, the hyperparameter's value, and
``create``, which makes the backend of a job's ``Settings``.
"""

import importlib
import pkgutil
from collections import namedtuple

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.compilers.torch_compile import TorchCompile
from compilegate_runtime.compilers.xla import REQUESTED as MANAGED
from compilegate_runtime.errors import HyperparameterError

__all__ = ["MANAGED", "MODES", "NAMES", "NoCompiler", "TorchCompile", "compiler_for"]

# How a job compiles: a mode by torch.compile's name, dynamic shapes (auto, false, true), the
# optimizer's step too or not, and which repeated blocks alone ("" for whole models).
Settings = namedtuple("Settings", "mode dynamic optimizer regions")


def _discovered():
    """Compilers by the hyperparameter's value."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {module.REQUESTED: module for module in modules if hasattr(module, "create")}


_COMPILERS = _discovered()
# The hyperparameters' values, their defaults first.
NAMES = ("none", *sorted(_COMPILERS, key=lambda name: (name != "torch_compile", name)))
MODES = tuple(
    dict.fromkeys(mode for name in NAMES for mode in getattr(_COMPILERS.get(name), "MODES", ()))
)


def compiler_for(name, mode="default", dynamic="auto", *, optimizer=False, regions=""):
    """The backend of one hyperparameter value; the others say how torch.compile compiles.

    Raises CompilerUnavailableError when this environment lacks it, HyperparameterError for a mode
    without its compiler.
    """
    compiler = _COMPILERS.get(name)
    if mode != "default" and mode not in getattr(compiler, "MODES", ()):
        owners = [one for one in NAMES if mode in getattr(_COMPILERS.get(one), "MODES", ())]
        raise HyperparameterError(
            f"compile_mode {mode} belongs to compiler {' and '.join(owners)} and would not be "
            f"applied to compiler {name}"
        )
    if compiler is None:
        return NoCompiler()
    return compiler.create(Settings(mode, dynamic, optimizer, regions))
