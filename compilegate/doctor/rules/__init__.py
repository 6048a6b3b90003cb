"""Every rule, in the order in which findings are listed."""

from compilegate.doctor.rule import Rule
from compilegate.doctor.rules import (
    compiling,
    debugging,
    feeding,
    graph,
    pauses,
    shapes,
    sync,
    tensorflow,
    xla,
)

RULES: tuple[Rule, ...] = (
    *compiling.RULES,
    *xla.RULES,
    *tensorflow.RULES,
    *shapes.RULES,
    *graph.RULES,
    *sync.RULES,
    *debugging.RULES,
    *pauses.RULES,
    *feeding.RULES,
)
BY_ID = {rule.id: rule for rule in RULES}

__all__ = ["BY_ID", "RULES"]
