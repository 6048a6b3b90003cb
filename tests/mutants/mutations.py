"""Small mistakes in a module: where they are made, and what stands there instead.

Most are mutmut's own. Its runner leaves out constants, class bodies and decorated functions, where
half of what once went unnoticed stood, so its mutations are made here, and a few more (`MORE`).
Text for people stays: no mutation changes a string, what is raised or logged, or the choice between
two strings; and types hold what a missing argument or None would break.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation import mutators

Operators = Sequence[tuple[type | tuple[type, ...], Callable[[Any], Iterable[cst.CSTNode]]]]
FROM_MUTMUT = (
    mutators.operator_number, mutators.operator_name, mutators.operator_remove_unary_ops,
    mutators.operator_symmetric_string_methods_swap, mutators.operator_keywords,
    mutators.operator_unsymmetrical_string_methods_swap, mutators.operator_swap_op,
    mutators.operator_match, mutators.operator_if_exp,
)  # fmt: skip
SWAPPED = {"min": "max", "any": "all", "floor": "ceil"}
SWAPPED |= {new: old for old, new in SWAPPED.items()}
NOT_MUTATED = (cst.Annotation, cst.BaseString, cst.Decorator, cst.Import, cst.ImportFrom, cst.Raise)
PLAIN_CONDITIONS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
LOGS = re.compile(r"(\w*logger|logging|warnings)\.\w+$")
WORD = re.compile(r"\w+|\S")


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake in ``scope``, the name of the class and function, "" outside.

    ``before`` and ``after`` are the lines that differ; ``function`` are those of the function.
    """

    path: str
    scope: str
    before: str
    after: str
    lines: range
    function: range | None
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The same in another module, on another line."""
        return self.scope, self.before, self.after

    def order(self, seed: str) -> str:
        return shuffled(repr(self.key), seed)


def shuffled(text: str, seed: str) -> str:
    """What to sort by, for an order that the seed alone chooses."""
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()


def fewer_choices(node: cst.Tuple | cst.List | cst.Set) -> Iterator[cst.CSTNode]:
    """Several constants, names or texts without one of them."""
    plain = (cst.Name, cst.Attribute, cst.SimpleString, cst.BaseNumber)
    if len(node.elements) < 2 or not all(isinstance(e.value, plain) for e in node.elements):
        return
    for place in range(len(node.elements)):
        left = [*node.elements[:place], *node.elements[place + 1 :]]
        left[-1] = left[-1].with_changes(comma=cst.Comma())
        yield node.with_changes(elements=left)


def other_end(node: cst.Subscript) -> Iterator[cst.CSTNode]:
    """The first instead of the last, and the other way round."""
    code = cst.Module([]).code_for_node(node.slice[0])
    instead = {"0": "-1", "-1": "0"}.get(code)
    if instead and len(node.slice) == 1:
        element = cst.SubscriptElement(cst.Index(cst.parse_expression(instead)))
        yield node.with_changes(slice=[element])


def both_alike(node: cst.BinaryOperation) -> Iterator[cst.CSTNode]:
    """The same on both sides, where they differ in names alone."""
    if _differ_in_names(node.left, node.right):
        yield node.with_changes(right=node.left)
        yield node.with_changes(left=node.right)


def arguments_alike(node: cst.Call) -> Iterator[cst.CSTNode]:
    """The same argument twice, where two differ in names alone."""
    for place, (one, other) in enumerate(pairwise(node.args)):
        if not one.star and not other.star and _differ_in_names(one.value, other.value):
            twice = other.with_changes(value=one.value)
            yield node.with_changes(args=[*node.args[: place + 1], twice, *node.args[place + 2 :]])


def _differ_in_names(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """At least one word is the same in both, and each that is not is a name."""
    first, second = (WORD.findall(cst.Module([]).code_for_node(node)) for node in (one, other))
    pairs = [(a, b) for a, b in zip(first, second, strict=False) if a != b]
    names = all(a.isidentifier() and b.isidentifier() for a, b in pairs)
    return len(first) == len(second) > len(pairs) > 0 and names


def one_term(node: cst.BooleanOperation) -> Iterator[cst.CSTNode]:
    """One side of `and` and `or` alone."""
    for side in (node.left, node.right):
        yield side.with_changes(lpar=[*node.lpar, *side.lpar], rpar=[*side.rpar, *node.rpar])


def without_filter(node: cst.CompFor) -> Iterator[cst.CSTNode]:
    """All of them instead of some."""
    if node.ifs:
        yield node.with_changes(ifs=[])


def other_function(node: cst.Call) -> Iterator[cst.CSTNode]:
    """`max` for `min`, `all` for `any`."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if isinstance(name, cst.Name) and name.value in SWAPPED:
        yield node.with_deep_changes(name, value=SWAPPED[name.value])


def without_option(node: cst.Call) -> Iterator[cst.CSTNode]:
    """The default for what is given by name; without one, the types hold it."""
    if isinstance(node.func, cst.Name) and node.func.value[:1].isupper():
        return
    for place, argument in enumerate(node.args):
        if argument.keyword:
            yield node.with_changes(args=[*node.args[:place], *node.args[place + 1 :]])


def not_done(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """What is only called is not."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


MORE: Operators = [
    ((cst.Tuple, cst.List, cst.Set), fewer_choices),
    (cst.Subscript, other_end),
    (cst.BinaryOperation, both_alike),
    (cst.Call, arguments_alike),
    (cst.BooleanOperation, one_term),
    (cst.CompFor, without_filter),
    (cst.Call, other_function),
    (cst.Call, without_option),
    (cst.Expr, not_done),
]
OPERATORS: Operators = [
    *(one for one in mutators.mutation_operators if one[1] in FROM_MUTMUT), *MORE,
]  # fmt: skip


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Visitor(path, source)
    wrapper.visit(visitor)
    different = {mutant.source: mutant for mutant in visitor.mutants if mutant.source != source}
    return sorted(different.values(), key=lambda mutant: (mutant.lines.start, mutant.key))


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (WhitespaceInclusivePositionProvider,)

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []
        self.functions: list[range] = []
        self.mutants: list[Mutant] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, NOT_MUTATED) and not isinstance(node, cst.FormattedString):
            return False
        if _is_text(node) or _logs(node.value if isinstance(node, cst.Expr) else node):
            return False
        if isinstance(node, cst.Assign) and _is_all(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.scope.append(node.name.value)
        if isinstance(node, cst.FunctionDef):
            self.functions.append(self._lines(node))
        if isinstance(node, cst.If | cst.While) and isinstance(node.test, PLAIN_CONDITIONS):
            self._add(node.test, cst.UnaryOperation(cst.Not(), node.test))
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                for mutated in operator(node):
                    self._add(node, mutated)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self.scope.pop()
        if isinstance(original_node, cst.FunctionDef):
            self.functions.pop()

    def _lines(self, node: cst.CSTNode) -> range:
        position = self.get_metadata(WhitespaceInclusivePositionProvider, node)
        return range(position.start.line, position.end.line + bool(position.end.column))

    def _add(self, node: cst.CSTNode, mutated: cst.CSTNode) -> None:
        position = self.get_metadata(WhitespaceInclusivePositionProvider, node)
        start, end = (
            self.starts[place.line - 1] + place.column for place in (position.start, position.end)
        )
        text = cst.Module([]).code_for_node(mutated)
        source = self.source[:start] + text + self.source[end:]
        before, after = _difference(self.source, source)
        scope, function = ".".join(self.scope), self.functions[-1] if self.functions else None
        lines = self._lines(node)
        self.mutants.append(Mutant(self.path, scope, before, after, lines, function, source))


def _is_text(node: cst.CSTNode) -> bool:
    """Whether one of two texts is chosen."""
    both = (node.body, node.orelse) if isinstance(node, cst.IfExp) else ()
    return bool(both) and all(isinstance(one, cst.BaseString) for one in both)


def _is_all(node: cst.Assign) -> bool:
    """What a module gives to `import *`, which nothing here does."""
    return isinstance(name := node.targets[0].target, cst.Name) and name.value == "__all__"


def _logs(node: cst.CSTNode) -> bool:
    is_call = isinstance(node, cst.Call)
    return is_call and bool(LOGS.match(cst.Module([]).code_for_node(node.func)))


def _difference(before: str, after: str) -> tuple[str, str]:
    """The lines of both that differ, each in one line."""
    old, new = before.splitlines(), after.splitlines()
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    while old and new and old[-1] == new[-1] and min(len(old), len(new)) > start:
        old.pop()
        new.pop()
    first, second = (" ".join(" ".join(lines[start:]).split()) for lines in (old, new))
    return first, second
