"""A stand-in for a graph compiler: it does not exist, and its figures are made up."""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import (
    CompileOverhead,
    Compiler,
    ComputeSpeedup,
    Proposal,
    ScriptNeeds,
)

COMPILER = Compiler(
    name="stand_in",
    rank=9,
    title="Stand-in compiler",
    proof="calls that it counted",
    kind="pytorch",
    since=(2, 4),
    source="made up for a test",
    modes=("careful",),
    keeps_cache=False,
    overheads=(CompileOverhead(None, 40, 80, "assumption: made up for a test", "2026-11-22"),),
    compute_speedup=ComputeSpeedup(1.0, 3.0, "assumption: made up for a test", "2026-11-22"),
    script_needs=ScriptNeeds("a call of stand_in.begin()", "made up for a test"),
    proposal=Proposal("stand-in", "made up for a test"),
)
