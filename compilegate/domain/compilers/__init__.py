"""The graph compilers that a candidate may name: a file for each, found here by itself.

Adding one takes its file here, its file in ``training/compilegate_runtime/compilers``, and a test.
What is assumed of it, with basis and date, stands in its file; tables of images that others publish
stand in ``compilegate/facts``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Proposal:
    """The candidate that is planned for a workload file that names none, and why."""

    candidate: str
    why: str


@dataclass(frozen=True)
class Launching:
    """How jobs start under a compiler that has launchers of its own.

    ``switches`` are hyperparameters that turn the compiler on in the training toolkit;
    ``distribution`` is the one way onto several GPUs.
    """

    switches: Mapping[str, object]
    distribution: str


@dataclass(frozen=True)
class CompileOverhead:
    """Seconds a run pays for compilation: with a warm cache, and without any.

    Assumed on ``basis`` until a trial has measured them; ``family`` None is every model family
    without a row of its own.
    """

    warm_seconds: float
    cold_seconds: float
    basis: str
    as_of: str
    family: str | None = None


@dataclass(frozen=True)
class ComputeSpeedup:
    """Range of what a compiler may do to the compute part of a step (ratio), by ``basis``."""

    low: float
    high: float
    basis: str
    as_of: str


@dataclass(frozen=True)
class ScriptNeeds:
    """What a script must have before the compiler can work on it, and the page that says so."""

    what: str
    source: str


@dataclass(frozen=True)
class Compiler:
    """One graph compiler; ``name`` is what ``compiler:`` in a workload file says.

    Compilers are proposed and listed in the order of ``rank``. ``title`` is what people call it.
    ``proof`` says what shows that a run was compiled. ``kind`` is the library that it compiles and
    ``since`` the first version with it, by ``source``; None where a table of images says both
    (``own_image``). ``repeated_blocks`` are all that it compiles, ``moving_shapes`` what it is for.
    ``compiles`` is False of a change that is launched and proven like a compiler, and is none.
    ``modes`` are the values of ``compile_mode``. ``keeps_cache`` between jobs, so
    that only the first one compiles. ``variant_of`` names the compiler that this one is with other
    options. ``overheads`` and ``compute_speedup`` bound what it may cost and gain; without them
    nothing is assumed. ``examined_as`` are the compilers whose rules ``compilegate doctor`` applies
    beside those that hold for every compiler. ``launching`` is None where the framework's
    launchers start it.
    """

    name: str
    rank: int
    title: str
    proof: str
    kind: str | None = None
    since: tuple[int, int] | None = None
    source: str = ""
    modes: tuple[str, ...] = ()
    keeps_cache: bool = True
    own_image: bool = False
    variant_of: str | None = None
    compiles: bool = True
    repeated_blocks: bool = False
    moving_shapes: bool = False
    overheads: tuple[CompileOverhead, ...] = ()
    compute_speedup: ComputeSpeedup | None = None
    script_needs: ScriptNeeds | None = None
    examined_as: tuple[str, ...] = ()
    proposal: Proposal | None = None
    launching: Launching | None = field(default=None, repr=False)

    @property
    def base(self) -> str:
        """The compiler that this one is a variant of, else itself."""
        return self.variant_of or self.name

    def overhead(self, family: str) -> CompileOverhead | None:
        """The row of the model family, else the one of every family."""
        rows = {row.family: row for row in self.overheads}
        return rows.get(family) or rows.get(None)


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
NO_COMPILER = Compiler("none", rank=-1, title="no compiler", proof="", compiles=False)


def compiler_named(name: str | None) -> Compiler:
    """The compiler of that name; ``NO_COMPILER`` for ``none`` and for what is not a compiler."""
    return COMPILERS.get(name or "", NO_COMPILER)
