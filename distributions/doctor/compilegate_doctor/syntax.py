"""Small questions about Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
MAX_DOTS = 20


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` as written, empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < MAX_DOTS:
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))


def called(call: ast.Call) -> str:
    """The last part of what is called: ``item`` for ``loss.item()``."""
    return last_name(call.func)


def last_name(node: ast.AST) -> str:
    """The last part of a name: ``step`` for ``self.optimizer.step``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def receiver(call: ast.Call) -> ast.expr | None:
    """What a method is called on."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((item.value for item in call.keywords if item.arg == name), None)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The value of an argument, by position or by keyword."""
    value = keyword(call, name)
    if value is None and position < len(call.args):
        value = call.args[position]
        return None if isinstance(value, ast.Starred) else value
    return value


def in_scope(node: ast.AST, *, without: tuple[type[ast.AST], ...] = ()) -> Iterator[ast.AST]:
    """A node and what it holds, but nothing inside functions and classes defined in it."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        yield inner
        for child in reversed(list(ast.iter_child_nodes(inner))):
            if not isinstance(child, (*SCOPES, *without)):
                stack.append(child)


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a node's own scope."""
    return (inner for inner in in_scope(node) if isinstance(inner, ast.Call))


def texts(node: ast.AST) -> Iterator[str]:
    """Every name and attribute that a node mentions."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def constant(node: ast.AST | None) -> object:
    """A constant's value, None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def set_variable(node: ast.Assign) -> str:
    """The environment variable that ``os.environ[...] = value`` sets to something but 0."""
    target = node.targets[0]
    if not isinstance(target, ast.Subscript) or not dotted(target.value).endswith("environ"):
        return ""
    return "" if constant(node.value) in ("0", "") else str(constant(target.slice))


def with_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, with it."""
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(positional), reversed(arguments.defaults), strict=False)
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    yield from ((item, default) for item, default in pairs if default is not None)
