"""The graph compilers that a candidate may name: a file for each, found here by itself.

Adding one takes its file here, its file in ``training/compilegate_runtime/compilers``, and a test.
What is assumed of it, with basis and date, stands in its file; tables of images that others publish
stand in ``compilegate/facts``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from compilegate.domain.compilers.descriptor import Compiler

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


# Of a job that turns on none: it has no image of its own, and nothing is assumed of it.
NO_COMPILER = Compiler("none", rank=-1, title="no compiler", proof="")


def compiler_named(name: object) -> Compiler:
    """The compiler of that name; ``NO_COMPILER`` for ``none`` and for what is not a compiler."""
    return COMPILERS.get(name, NO_COMPILER) if isinstance(name, str) else NO_COMPILER
