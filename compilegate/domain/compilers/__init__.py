"""The graph compilers that a candidate may name: a file for each, found here by itself.

Adding one takes its file here, its file in ``training/compilegate_runtime/compilers``, and a test.
What is assumed of it, with basis and date, stands in its file; tables of images that others publish
stand in ``compilegate/facts``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from compilegate.domain.compilers.descriptor import CompileOverhead, Compiler, ComputeSpeedup

_DESCRIPTORS = sorted(
    (
        module.COMPILER
        for name in sorted(info.name for info in pkgutil.iter_modules(__path__))
        if hasattr(module := importlib.import_module(f"{__name__}.{name}"), "COMPILER")
    ),
    key=lambda compiler: compiler.rank,
)
COMPILERS: Mapping[str, Compiler] = {compiler.name: compiler for compiler in _DESCRIPTORS}
# The one that is proposed first, and that a profile's compile times are taken to be of.
DEFAULT = _DESCRIPTORS[0]
# What a workload file may say, the one without a compiler first.
NAMES = ("none", *COMPILERS)
# Of every compiler that has modes, the default first.
MODES = tuple(dict.fromkeys(mode for compiler in _DESCRIPTORS for mode in compiler.modes))


def compiler_named(name: object) -> Compiler | None:
    """The compiler of that name, None for ``none`` and for what is not a compiler."""
    return COMPILERS.get(name) if isinstance(name, str) else None


def compile_overhead(name: object, family: str) -> CompileOverhead | None:
    """Compile seconds that are assumed for a model family; None when nothing is assumed."""
    compiler = compiler_named(name)
    return None if compiler is None else compiler.overhead(family)


def compute_speedup(name: object) -> ComputeSpeedup | None:
    """What the compiler may do to compute; None when nothing is assumed for it."""
    compiler = compiler_named(name)
    return None if compiler is None else compiler.compute_speedup


def has_own_image(name: object) -> bool:
    """Whether jobs of that compiler run in images of its own, with launchers of its own."""
    compiler = compiler_named(name)
    return compiler is not None and compiler.own_image


def keeps_cache(name: object) -> bool:
    """Whether what that compiler made in one job serves the next one."""
    compiler = compiler_named(name)
    return compiler is None or compiler.keeps_cache
