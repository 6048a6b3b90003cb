"""The graph compilers that a candidate may name: a file for each, found here by itself.

Adding one takes its file here, its file in ``training/compilegate_runtime/compilers``, and a test.
What is assumed of it, with basis and date, stands in its file; tables of images that others publish
stand in ``compilegate/facts``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from compilegate.domain.compilers.descriptor import (
    CompileOverhead,
    Compiler,
    ComputeSpeedup,
    Launching,
    Proposal,
    ScriptNeeds,
)

_ROWS: Mapping[str, Mapping[str, Any]] = {
    row["name"]: row
    for row in (  # also from the archive of a judge
        json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(files(__name__).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".json")
    )
}
_PARTS = {
    "compute_speedup": ComputeSpeedup, "launching": Launching, "proposal": Proposal,
    "script_needs": ScriptNeeds,
}  # fmt: skip


def _read(row: Mapping[str, Any]) -> Compiler:
    """The compiler of a file; a variant has everything of its base but the proposal."""
    row = {**_ROWS.get(row.get("variant_of", ""), {}), "proposal": None, **row}
    del row["about"]
    read: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    read |= {key: part(**row[key]) for key, part in _PARTS.items() if row.get(key)}
    read["overheads"] = tuple(CompileOverhead(**one) for one in row.get("overheads", ()))
    return Compiler(**read)


_DESCRIPTORS = sorted(map(_read, _ROWS.values()), key=lambda compiler: compiler.rank)
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
