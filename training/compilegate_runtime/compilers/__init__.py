"""Graph compilers behind one small interface; each proves that it was applied.

    forward = compiler.apply(model)      call this instead of the model
    compiler.reduce(optimizer)           before gradients are clipped, if they are
    compiler.step(optimizer)             instead of optimizer.step(); with the scaler under fp16
    compiler.save(state, path)           instead of torch.save(state, path), in every process

The rest is the recorder's: what was compiled, how long it took, and whether it happened at all.

A module of this folder is a compiler where it has ``COMPILER``, a subclass of ``NoCompiler`` with a
name of its own: the class of the backends that this environment can make.
"""

import importlib
import pkgutil
from collections import namedtuple

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.compilers.torch_compile import TorchCompile
from compilegate_runtime.errors import HyperparameterError

__all__ = ["MODES", "NAMES", "NoCompiler", "TorchCompile", "backend_named", "compiler_for"]

# How a job compiles: a mode by torch.compile's name, dynamic shapes (auto, false, true), the
# optimizer's step too or not, and which repeated blocks alone ("" for whole models).
Settings = namedtuple("Settings", "mode dynamic optimizer regions")


def _discovered():
    """Compilers by the hyperparameter's value."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    backends = [module.COMPILER for module in modules if hasattr(module, "COMPILER")]
    return {backend.name: backend for backend in backends}


_COMPILERS = _discovered()
# The hyperparameters' values, their defaults first.
NAMES = ("none", *sorted(_COMPILERS))
MODES = tuple(
    dict.fromkeys(["default", *(mode for one in _COMPILERS.values() for mode in one.modes)])
)


def backend_named(name):
    """The class of a compiler's backends; NoCompiler for ``none``."""
    return _COMPILERS.get(name, NoCompiler)


def compiler_for(name, mode="default", dynamic="auto", *, optimizer=False, regions=""):
    """The backend of one hyperparameter value; the others say how torch.compile compiles.

    Raises CompilerUnavailableError when this environment lacks it, HyperparameterError for a mode
    without its compiler.
    """
    backend = backend_named(name)
    if mode != "default" and mode not in backend.modes:
        owners = [one for one in NAMES if mode in backend_named(one).modes]
        raise HyperparameterError(
            f"compile_mode {mode} belongs to compiler {' and '.join(owners)} and would not be "
            f"applied to compiler {name}"
        )
    return backend.create(Settings(mode, dynamic, optimizer, regions))
