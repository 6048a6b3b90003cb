"""A script together with the modules of its own project, which are parsed when asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compilegate.doctor.script import Script, ScriptError, parse
from compilegate.doctor.source import Source

# From a module's name, dots and all, to its file's content; None where it is none of the project.
Reader = Callable[[str], bytes | None]


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
        for one in source.nodes if source else ():
            if source and isinstance(one, ast.ClassDef) and one.name == name:
                return source, one
        return None

    def module(self, name: str) -> Script | None:
        """A module of the project, parsed; None where it is none, or no Python."""
        content = self.read(name)
        try:
            return None if content is None else parse(content)
        except ScriptError:
            return None

    def imported(self) -> Iterator[Script]:
        """The modules of the project from which the script imports anything."""
        modules = {name.rpartition(".")[0] for name in self.script.imports.named}
        return (found for name in sorted(modules) if (found := self.module(name)) is not None)
