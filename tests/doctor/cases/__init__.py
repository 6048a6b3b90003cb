"""For every rule: scripts it must speak up about, and look-alikes it must be silent about."""

from tests.doctor.cases import compiling, feeding, graph, habits, shapes, sync, tensorflow, xla

CASES = {
    **shapes.CASES, **sync.CASES, **graph.CASES, **compiling.CASES, **habits.CASES,
    **feeding.CASES, **xla.CASES, **tensorflow.CASES,
}  # fmt: skip
