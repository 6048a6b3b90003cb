"""A script together with the modules of its own project, which are parsed when needed."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compilegate_doctor.script import Script, ScriptError, parse
from compilegate_doctor.source import Source

# From a module's name, dots and all, to its file's content; None where it is none of the project.
Reader = Callable[[str], bytes | None]
# A script beside a whole library imports hundreds; what trains is among the nearest.
MOST_FILES = 40
MOST_BYTES = 1024 * 1024


def no_module(_name: str) -> None:
    """A project of one file."""


@dataclass(frozen=True)
class Project:
    """A script, and a reader of the modules beside it."""

    script: Source
    read: Reader = no_module

    def class_named(self, node: ast.AST | None) -> tuple[Source, ast.ClassDef] | None:
        """The class that an expression of the script names, with the file that defines it.

        Looked for in the script and in the module that the script imports it from.
        """
        module, _, name = self.script.meaning(node).rpartition(".")
        source = self.module(module) if module else self.script
        for own_node in source.nodes if source else ():
            if source and isinstance(own_node, ast.ClassDef) and own_node.name == name:
                return source, own_node
        return None

    def module(self, name: str) -> Script | None:
        """A module of the project, parsed; None where it is none, no Python or far too long."""
        content = self.read(name)
        try:
            fits = content is not None and len(content) <= MOST_BYTES
            return parse(content) if fits and content is not None else None
        except ScriptError:
            return None

    @cached_property
    def imported(self) -> tuple[Script, ...]:
        """The project's modules that the script imports, and that those do, nearest first."""
        todo, modules = deque(_imported(self.script, "")), dict[str, Script | None]()
        while todo and sum(map(bool, modules.values())) < MOST_FILES:
            name = todo.popleft()
            if name not in modules:
                modules[name] = module = self.module(name)
                todo.extend(_imported(module, name) if module else ())
        return tuple(filter(None, modules.values()))


def _imported(source: Source, importer: str) -> Iterator[str]:
    """Names of the modules that a file may import, as the script itself would write them."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = _absolute(node, importer)
            if start.strip("."):
                yield start
            dot = "." if start.strip(".") else ""
            yield from (f"{start}{dot}{item.name}" for item in node.names if item.name != "*")


def _absolute(node: ast.ImportFrom, importer: str) -> str:
    """What ``from … import`` names; relative to ``importer``, which is empty for the script."""
    module = node.module or ""
    if not node.level or not importer:
        return "." * node.level + module
    above = importer.split(".")[: -node.level]
    return ".".join([*above, *([module] if module else [])])
