"""A stand-in for a compiler of a library that no workload file can name."""

from __future__ import annotations

from compilegate.domain.compilers.descriptor import Compiler

COMPILER = Compiler(
    name="stand_in_jax",
    rank=10,
    title="Stand-in of JAX",
    proof="none: it is never run",
    kind="jax",
    since=(2, 4),
    source="made up for a test",
)
