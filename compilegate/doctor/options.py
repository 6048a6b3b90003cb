"""A script's settings: defaults of command-line options and dataclass fields, constants.

With them a branch that is off by default is not reported. Hyperparameters of a workload override
the defaults.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from compilegate.doctor.syntax import called, dotted, keyword, last_name

UNKNOWN: Final = object()
HOLDERS = re.compile(
    r"(^|\.)(\w*args|\w*arguments|opts?|options|flags|\w*cfg|\w*config|hparams|params|settings)$",
    re.IGNORECASE,
)
DEEP = 8
COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


class Options:
    """Values that can be read without running the script."""

    def __init__(
        self, nodes: Iterable[ast.AST], hyperparameters: Mapping[str, Any] | None = None
    ) -> None:
        self._defaults: dict[str, Any] = {}
        self._assigned: dict[str, list[ast.expr | None]] = {}
        self.names: set[str] = set()  # settings that can come from outside
        for node in nodes:
            self._read(node)
        for name, value in (hyperparameters or {}).items():
            self._defaults[_plain(name)] = value
            self.names.add(_plain(name))

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call) and called(node) in ("add_argument", "option"):
            self._option(node)
        elif isinstance(node, ast.ClassDef) and any(map(_is_dataclass, node.decorator_list)):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    self._default(field.target.id, _field_default(field.value))
        else:
            self._assignment(node)

    def _option(self, call: ast.Call) -> None:
        flags = [item.value for item in call.args if isinstance(item, ast.Constant)]
        words = [flag for flag in flags if isinstance(flag, str)]
        long = [word for word in words if word.startswith("--")] or words
        if not long:
            return
        destination = keyword(call, "dest")
        name = destination.value if isinstance(destination, ast.Constant) else long[0]
        action = keyword(call, "action")
        action_word = action.value if isinstance(action, ast.Constant) else ""
        value: Any = {"store_true": False, "store_false": True}.get(str(action_word))
        default = keyword(call, "default")
        if default is not None:
            value = default.value if isinstance(default, ast.Constant) else UNKNOWN
        elif keyword(call, "required") is not None or not long[0].startswith("--"):
            value = UNKNOWN
        self._default(str(name), value)

    def _default(self, name: str, value: Any) -> None:
        plain = _plain(name)
        self.names.add(plain)
        earlier = self._defaults.get(plain, value)
        # Two groups of options may use one name; then its value is unknown.
        same = type(earlier) is type(value) and earlier == value
        self._defaults[plain] = value if same else UNKNOWN

    def _assignment(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            self._assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
            self._assign(node.target, None)
        elif isinstance(node, ast.NamedExpr):
            self._assign(node.target, node.value)
        elif isinstance(node, ast.arg):
            self._assigned.setdefault(node.arg, []).append(None)
        elif isinstance(node, ast.Global):
            for name in node.names:
                self._assigned.setdefault(name, []).append(None)

    def _assign(self, target: ast.AST, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._assigned.setdefault(target.id, []).append(value)
            return
        if isinstance(target, ast.Attribute):
            return
        for item in ast.walk(target):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                self._assigned.setdefault(item.id, []).append(None)

    def assigned(self, name: str) -> ast.expr | None:
        """The one expression that a name ever stands for, None where there are several."""
        values = self._assigned.get(name, [])
        return values[0] if len(values) == 1 else None

    def is_option(self, node: ast.AST) -> bool:
        """Whether a value comes from outside: an option, a hyperparameter."""
        if isinstance(node, ast.Name):
            value = self.assigned(node.id)
            return value is not None and self.is_option(value)
        if isinstance(node, ast.Call) and called(node) in ("int", "float") and node.args:
            return self.is_option(node.args[0])
        return isinstance(node, ast.Attribute) and node.attr in self.names and _holds(node.value)

    def value(self, node: ast.AST | None, depth: int = 0) -> Any:
        """The value of an expression, or UNKNOWN."""
        if node is None or depth > DEEP:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            only = self.assigned(node.id)
            return UNKNOWN if only is None else self.value(only, depth + 1)
        if isinstance(node, ast.Attribute):
            holds = _holds(node.value)
            return self._defaults.get(_plain(node.attr), UNKNOWN) if holds else UNKNOWN
        return self._computed(node, depth + 1)

    def _computed(self, node: ast.AST, depth: int) -> Any:
        if isinstance(node, ast.IfExp):
            test = self.value(node.test, depth)
            branch = node.body if test else node.orelse
            return UNKNOWN if test is UNKNOWN else self.value(branch, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.value(node.operand, depth)
            return UNKNOWN if value is UNKNOWN else not value
        if isinstance(node, ast.BoolOp):
            return self._both(node, depth)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node, depth)
        if isinstance(node, ast.Call) and last_name(node.func) in ("int", "float") and node.args:
            return self.value(node.args[0], depth)
        return UNKNOWN

    def _both(self, node: ast.BoolOp, depth: int) -> Any:
        values = [self.value(item, depth) for item in node.values]
        decisive = isinstance(node.op, ast.Or)
        if any(value is not UNKNOWN and bool(value) is decisive for value in values):
            return decisive
        return UNKNOWN if UNKNOWN in values else not decisive

    def _compared(self, node: ast.Compare, depth: int) -> Any:
        left, right = self.value(node.left, depth), self.value(node.comparators[0], depth)
        compare = COMPARES.get(type(node.ops[0]))
        if UNKNOWN in (left, right) or compare is None:
            return UNKNOWN
        try:
            return bool(compare(left, right))
        except TypeError:
            return UNKNOWN


def _is_dataclass(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return last_name(function) == "dataclass"


def _holds(node: ast.AST) -> bool:
    return bool(HOLDERS.search(dotted(node)))


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _field_default(value: ast.expr | None) -> Any:
    if isinstance(value, ast.Call):
        value = keyword(value, "default")
    return value.value if isinstance(value, ast.Constant) else UNKNOWN
