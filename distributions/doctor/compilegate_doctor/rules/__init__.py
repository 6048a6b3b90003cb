"""Every rule, in the order in which findings are listed."""

from compilegate_doctor.rule import Rule
from compilegate_doctor.rules import (
    compiling,
    feeding,
    graph,
    interruptions,
    managed,
    shapes,
    sync,
)

RULES: tuple[Rule, ...] = (
    *compiling.RULES,
    *managed.RULES,
    *shapes.RULES,
    *graph.RULES,
    *sync.RULES,
    *interruptions.RULES,
    *feeding.RULES,
)
BY_ID = {rule.id: rule for rule in RULES}

__all__ = ["BY_ID", "RULES"]
