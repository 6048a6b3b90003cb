"""One argument of a script, and what can be read of its default."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate_doctor.syntax import argument, constant, dotted, last_name

# Powers beyond these are no setting of a training run, and could take long to compute.
MOST_BASE, MOST_POWER = 1024, 64
NUMBERS: Mapping[str, Callable[[Any], int | float]] = {"int": int, "float": float}
ENVIRONMENT = ("os.environ.get", "environ.get", "os.getenv", "getenv")


@dataclass(frozen=True)
class Option:
    """An argument: its name without dashes, its default (None where there is none to read).

    A ``switch`` is passed without a value. ``unread``: it has a default, which only running the
    script would tell. ``also`` are other names it is known by in the code.
    """

    name: str
    default: Any = None
    required: bool = False
    switch: bool = False
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    unread: bool = False

    @property
    def plain(self) -> str:
        """The last part of its name, with underscores."""
        return self.known_as[0]

    @property
    def known_as(self) -> tuple[str, ...]:
        """The last part of each of its names, with underscores."""
        names = (self.name, *self.also)
        return tuple(name.rpartition(".")[2].replace("-", "_").lower() for name in names)


def value_of(node: ast.expr | None) -> Any:
    """A default as far as it can be read; of a choice between two the first."""
    if isinstance(node, ast.IfExp):
        node = node.body
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _called(node) if isinstance(node, ast.Call) else _computed(node)


def is_unread(node: ast.expr | None) -> bool:
    """Whether there is a default, and none that ``value_of`` reads."""
    return node is not None and value_of(node) is None and not isinstance(node, ast.Constant)


def _called(call: ast.Call) -> Any:
    """``float("1e-3")``, ``Path("data")``; what is taken where a variable is not set."""
    name = dotted(call.func)
    if name in ENVIRONMENT:
        return value_of(argument(call, 1, "default"))
    if name.rpartition(".")[2] == "Path" and len(call.args) == 1:
        return value_of(call.args[0])
    if name not in NUMBERS or len(call.args) != 1 or call.keywords:
        return None
    try:
        number = NUMBERS[name](value_of(call.args[0]))
    except (ValueError, TypeError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _computed(node: ast.expr) -> Any:
    """Products and powers of numbers, such as ``5 * 8`` and ``10 ** 4``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div | ast.Pow):
        return None
    left, right = value_of(node.left), value_of(node.right)
    if not all(isinstance(side, int | float) for side in (left, right)) or right == 0:
        return None
    if isinstance(node.op, ast.Pow):
        small = 0 < left <= MOST_BASE and abs(right) <= MOST_POWER
        return left**right if small else None
    return left * right if isinstance(node.op, ast.Mult) else left / right


def words_of(node: ast.expr | None) -> tuple[str, ...]:
    """The words of a literal list, or the keys of a dictionary."""
    value = value_of(node)
    if isinstance(value, dict | list | tuple | set):
        return tuple(str(word) for word in value)
    return ()


def literal_words(annotation: ast.expr) -> tuple[str, ...]:
    """The words of ``Literal["a", "b"]`` in an annotation."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and last_name(node.value) == "Literal":
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(str(constant(item)) for item in inner)
    return ()
