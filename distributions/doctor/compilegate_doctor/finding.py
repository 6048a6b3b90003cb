"""What the doctor says about one place of a script."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum

TORCH_COMPILE = "torch_compile"
MANAGED_COMPILER = "sagemaker_training_compiler"
COMPILERS = (TORCH_COMPILE, MANAGED_COMPILER)


class Severity(StrEnum):
    """How bad it is: it does not work, it costs time, or it is worth knowing."""

    BREAKS = "breaks"
    SLOWS = "slows"
    NOTE = "note"


@dataclass(frozen=True)
class Hit:
    """A place that a rule found; ``severity`` and ``fix`` where they differ from the rule's."""

    node: ast.AST
    message: str
    severity: Severity | None = None
    fix: str | None = None


@dataclass(frozen=True)
class Place:
    """A region of a file; lines and columns count from 1, ``end_column`` is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Finding:
    """One finding; ``source`` is the line it is on, as written."""

    rule: str
    severity: Severity
    place: Place
    source: str
    message: str
    fix: str

    def to_dict(self) -> dict[str, object]:
        """The finding as JSON."""
        return {
            "rule": self.rule, "severity": str(self.severity), "line": self.place.line,
            "column": self.place.column, "end_line": self.place.end_line,
            "end_column": self.place.end_column, "source": self.source,
            "message": self.message, "fix": self.fix,
        }  # fmt: skip
