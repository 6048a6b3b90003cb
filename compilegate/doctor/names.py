"""What names mean: imports resolved, and the words that training scripts use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from compilegate.doctor.syntax import dotted

MODEL = re.compile(
    r"(^|_)(model|net|network|module|criterion|loss_fn|loss_func|backbone|encoder|decoder|"
    r"generator|discriminator|critic|policy|net[dg]|unet|vae)(_?\d+)?$",
    re.IGNORECASE,
)
# build_model() gives a model, is_model() does not; neither is one that is called.
MAKES_MODEL = re.compile(
    r"(build|create|make|get|load|init|setup|unwrap|wrap|prepare)_", re.IGNORECASE
)
NO_MODEL = re.compile(r"(is|has|should|can|save|export|count|print|log|check|eval\w*|test|train)_",
                      re.IGNORECASE)  # fmt: skip
LOSS = re.compile(r"(^|_)(loss|err[dg]?)(_|$)|loss$", re.IGNORECASE)
OPTIMIZER = re.compile(r"optim|(^|_)opt(_|$)|(^|_)opt[dg]?$", re.IGNORECASE)
TRAINING = re.compile(r"train", re.IGNORECASE)
HELD_OUT = re.compile(r"(^|_|\b)(e?val|valid|validation|dev|test|testing|eval|evaluation|"
                      r"predict|pred|infer|inference|holdout)(_|\b|$|\d)|"
                      r"^(val|test|eval|valid)", re.IGNORECASE)  # fmt: skip


class Imports:
    """Which dotted name a local name stands for."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self._meaning: dict[str, str] = {}
        self.packages: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                self._plain(node)
            elif isinstance(node, ast.ImportFrom):
                self._from(node)

    def _plain(self, node: ast.Import) -> None:
        for item in node.names:
            self.packages.add(item.name.split(".")[0])
            if item.asname:
                self._meaning[item.asname] = item.name

    def _from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        if not node.level:
            self.packages.add(module.split(".")[0])
        for item in node.names:
            self._meaning[item.asname or item.name] = f"{module}.{item.name}"

    def meaning(self, node: ast.AST | None) -> str:
        """``torch.nn.Module`` for ``nn.Module`` after ``from torch import nn``; as written else."""
        written = dotted(node)
        first, dot, rest = written.partition(".")
        return self._meaning.get(first, first) + dot + rest if written else ""
