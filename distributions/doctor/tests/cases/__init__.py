"""For every rule: scripts that it must report, and look-alikes that it must not."""

from distributions.doctor.tests.cases import (
    compiling,
    feeding,
    graph,
    interruptions,
    managed,
    shapes,
    sync,
)

CASES = {
    **shapes.CASES, **sync.CASES, **graph.CASES, **compiling.CASES, **interruptions.CASES,
    **feeding.CASES, **managed.CASES,
}  # fmt: skip
