"""A parsed file: names, calls, what is inside what."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from compilegate_doctor.options import Options
from compilegate_doctor.syntax import FUNCTIONS, Function
from compilegate_doctor.words import Imports


class Source:
    """One parsed file; ``hyperparameters`` are those it is started with, None if not known."""

    def __init__(
        self, text: str, tree: ast.Module, hyperparameters: Mapping[str, Any] | None
    ) -> None:
        self.text, self.tree = text, tree
        self.lines = text.split("\n")  # as the parser counts them, form feeds and all
        self.hyperparameters = hyperparameters
        self.nodes: list[ast.AST] = [tree]  # all of them, outer ones first
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in self.nodes:
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                self.nodes.append(child)
        self.imports = Imports(self.nodes)

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call of the file, in order."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        return sorted(calls, key=lambda call: (call.lineno, call.col_offset))

    @cached_property
    def functions(self) -> list[Function]:
        """Every function of the file."""
        return [node for node in self.nodes if isinstance(node, FUNCTIONS)]

    @cached_property
    def options(self) -> Options:
        """The script's settings, as far as they can be read."""
        return Options(self.nodes, self.hyperparameters)

    def meaning(self, node: ast.AST | None) -> str:
        """A name with its imports resolved."""
        return self.imports.meaning(node)

    def called(self, call: ast.Call) -> str:
        """What is called, imports resolved."""
        return self.imports.meaning(call.func)

    def parents_of(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the closest one outwards."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def statement(self, node: ast.AST) -> ast.AST:
        """The statement that an expression is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next((item for item in self.parents_of(node) if isinstance(item, ast.stmt)), node)

    def function_of(self, node: ast.AST) -> Function | None:
        """The function that a node is in."""
        return next((item for item in self.parents_of(node) if isinstance(item, FUNCTIONS)), None)

    def uses(self, *packages: str) -> bool:
        """Whether any of these packages is imported."""
        return not self.imports.packages.isdisjoint(packages)
