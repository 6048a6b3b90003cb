"""A script's settings: defaults of command-line options and dataclass fields, constants.

With them a branch that is off by default is not reported, and one that is taken now and then does
not count as every step. Hyperparameters of a workload override the defaults.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from compilegate_doctor.syntax import (
    FUNCTIONS,
    Function,
    called,
    dotted,
    keyword,
    last_name,
    texts,
    with_defaults,
)
from compilegate_doctor.words import HELD_OUT

UNKNOWN: Final = object()
HOLDERS = re.compile(
    r"(^|\.)(\w*args|\w*arguments|opts?|options|flags|\w*cfg|\w*config|hparams|params|settings)$",
    re.IGNORECASE,
)
ACCUMULATION = re.compile(r"accum|micro", re.IGNORECASE)
NOW_AND_THEN = re.compile(
    r"(^|_)(log|logs|logging|print|printing|report|save|saving|checkpoint\w*|eval\w*|interval|"
    r"every|freq\w*|debug\w*|verbose|profil\w*|should\w*|time|timer|track\w*|last|first|best|"
    r"done|finished|stop|divisible|is\w*nan|is\w*inf|isfinite|tensorboard|wandb|dry_run)(_|$)|steps?$",
    re.IGNORECASE,
)
COUNTER = re.compile(
    r"(^|_)(step|steps|iter|iters|iteration|iterations|idx|index|batch_i|i|j|n|it|count|counter|"
    r"epoch|batch|num|updates?)(_|$)|step$|idx$",
    re.IGNORECASE,
)
BEST = re.compile(r"(^|_)(best|min|lowest|highest)(_|$)", re.IGNORECASE)
# Conditions that hold in training although no setting of the script says so.
HOLDS = re.compile(r"(^|_|is)(main|master|rank|process|cuda|train|training)(_|\d|$)", re.IGNORECASE)
HANDED_OVER = re.compile(r"(^|_)(data|batch|labels?|targets?)(_|$)", re.IGNORECASE)
CLOCK = re.compile(r"(^|_)(time|perf_counter|monotonic)$")
MOST_NESTED = 6
DEEP = 8
COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


class Options:
    """Values that can be read without running the script."""

    def __init__(
        self,
        nodes: Iterable[ast.AST],
        hyperparameters: Mapping[str, Any] | None = None,
        parameters: Mapping[ast.arg, ast.expr] | None = None,
    ) -> None:
        # Of functions that a command line starts: each with its option's default.
        self._parameters = parameters or {}
        self._defaults: dict[str, Any] = {}
        self._assigned: dict[str, list[ast.expr | None]] = {}
        self._replaced: dict[str, Any] = {}
        self._attributes: dict[str, list[ast.expr | None]] = {}
        self._passed: dict[str, list[ast.expr | None]] = {}  # to constructors, by parameter
        self.names: set[str] = set()  # settings that can come from outside
        for node in nodes:
            self._read(node)
        for name, value in (hyperparameters or {}).items():
            self._defaults[_plain(name)] = self._replaced[_plain(name)] = value
            self.names.add(_plain(name))

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call) and called(node) in ("add_argument", "option"):
            self._option(node)
        elif isinstance(node, ast.ClassDef) and any(map(_is_dataclass, node.decorator_list)):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    self._default(field.target.id, _field_default(field.value))
        elif isinstance(node, FUNCTIONS) and node.name == "__init__":
            self._constructor(node)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            self._passed.setdefault(node.arg, []).append(node.value)
        else:
            self._assignment(node)

    def _constructor(self, function: Function) -> None:
        defaults = dict(with_defaults(function.args))
        for item in (*function.args.args, *function.args.kwonlyargs):
            self._passed.setdefault(item.arg, []).append(defaults.get(item))

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
            self._assigned.setdefault(node.arg, []).append(self._parameters.get(node))
        elif isinstance(node, ast.Global):
            for name in node.names:
                self._assigned.setdefault(name, []).append(None)

    def _assign(self, target: ast.AST, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._assigned.setdefault(target.id, []).append(value)
            return
        if isinstance(target, ast.Attribute):
            self._attributes.setdefault(target.attr, []).append(value)
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
            if isinstance(only, ast.Constant) and node.id in self._replaced:
                return self._replaced[node.id]  # a constant at the top that arguments replace
            return UNKNOWN if only is None else self.value(only, depth + 1)
        if isinstance(node, ast.Attribute):
            holds = _holds(node.value)
            set_outside = self._defaults.get(_plain(node.attr), UNKNOWN)
            return set_outside if holds else self._of_object(node)
        return self._computed(node, depth + 1)

    def _of_object(self, node: ast.Attribute) -> Any:
        """What ``self.name`` is wherever it is set: a constant, or its constructor's default."""
        if dotted(node.value) != "self":
            return UNKNOWN
        possible: list[Any] = []
        left = [(value, node.attr, False) for value in self._attributes.get(node.attr, [])]
        asked: set[str] = set()
        for value, name, passed in left:
            handed_on = passed or isinstance(value, ast.Attribute)
            if isinstance(value, ast.Constant):
                possible.append(value.value)
            elif value is not None and handed_on and last_name(value) == name:
                pass  # under its own name it says nothing
            elif isinstance(value, ast.Name) and value.id in self._passed:
                if value.id not in asked:
                    asked.add(value.id)
                    left += [(one, value.id, True) for one in self._passed[value.id]]
            else:
                return UNKNOWN
        first = possible[0] if possible else UNKNOWN
        alike = all(type(one) is type(first) and one == first for one in possible)
        return first if alike else UNKNOWN

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


def _is_setting(node: ast.AST) -> bool:
    """``args.amp``, ``cfg.TRAIN.AMP``, ``config["amp"]``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _holds(node.value)
    parts = dotted(node).split(".")[:-1]
    return isinstance(node, ast.Attribute) and any(map(HOLDERS.search, parts))


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


def _held_out(node: ast.expr) -> bool:
    """``phase == "val"``, ``Phase.VAL``."""
    word = node.value if isinstance(node, ast.Constant) else last_name(node)
    return isinstance(word, str) and HELD_OUT.search(word) is not None


class Guards:
    """Whether a condition inside a step's code holds in every step, or only now and then."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def decided(self, test: ast.expr) -> bool | None:
        """True or False where the settings decide it, else None."""
        value = self._options.value(test)
        return None if value is UNKNOWN else bool(value)

    def usual(self, test: ast.expr) -> bool:
        """Whether a condition is sure to hold in training: decided so, or of what it is known.

        The rest may be off, or about data that another file decides on.
        """
        decided = self.decided(test)
        if decided is not None:
            return decided
        if isinstance(test, ast.BoolOp):
            parts = [self.usual(item) for item in test.values]
            return all(parts) if isinstance(test.op, ast.And) else any(parts)
        modulo = self._modulo(test)
        if modulo is not None:
            return not self._periodic(modulo)
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
            return HANDED_OVER.search(last_name(test.left)) is not None
        said = (node.value for node in ast.walk(test) if isinstance(node, ast.Constant))
        words = (*texts(test), *(word for word in said if isinstance(word, str)))
        off = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        return not off and any(map(HOLDS.search, words))

    def now_and_then(self, test: ast.expr, depth: int = 0) -> bool:
        """Whether a condition is true in few steps only, as far as its words tell."""
        if depth > MOST_NESTED:
            return False
        if isinstance(test, ast.BoolOp):
            rare = [self.now_and_then(item, depth + 1) for item in test.values]
            return any(rare) if isinstance(test.op, ast.And) else all(rare)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            modulo = self._modulo(test.operand)
            return modulo is not None and self._periodic(modulo)
        if isinstance(test, ast.Compare):
            return self._compare(test)
        if isinstance(test, ast.Name):
            only = self._options.assigned(test.id)
            if isinstance(only, ast.BoolOp | ast.Compare | ast.UnaryOp):
                return self.now_and_then(only, depth + 1)
        return self._named(test)

    def skips_most(self, test: ast.expr) -> bool:
        """Whether a condition is true in nearly every step: ``step % 10 != 0``, ``step % 10``."""
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq | ast.Gt):
            modulo = self._modulo(test.left)
        else:
            modulo = self._modulo(test)
        return modulo is not None and self._periodic(modulo)

    def _compare(self, test: ast.Compare) -> bool:
        modulo = self._modulo(test)
        if modulo is not None:
            return self._periodic(modulo) and not isinstance(test.ops[0], ast.NotEq)
        if isinstance(test.ops[0], ast.Is | ast.IsNot | ast.NotEq):
            return False
        words = list(texts(test))
        if any(CLOCK.search(word) for word in words):
            return True
        sides = [test.left, *test.comparators]
        if any(BEST.search(word) for word in words) or any(map(_held_out, test.comparators)):
            return True
        named = [*map(last_name, sides), *(last_name(side.left) for side in sides
                                           if isinstance(side, ast.BinOp))]  # fmt: skip
        return any(COUNTER.search(name) for name in named if name)

    def _periodic(self, modulo: ast.BinOp) -> bool:
        factors = [modulo.right]
        if isinstance(modulo.right, ast.BinOp) and isinstance(modulo.right.op, ast.Mult):
            factors = [modulo.right.left, modulo.right.right]
        if all(any(map(ACCUMULATION.search, texts(factor))) for factor in factors):
            return False  # gradient accumulation: that is the step itself
        period = self._options.value(modulo.right)
        return period is UNKNOWN or period not in (1, True)

    @staticmethod
    def _modulo(node: ast.AST) -> ast.BinOp | None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
                return None if isinstance(inner.left, ast.Constant) else inner
        return None

    def _named(self, test: ast.expr) -> bool:
        if _is_setting(test):  # of another file: whether it is on is not known
            unset = self._options.value(test) is UNKNOWN
            return unset or bool(NOW_AND_THEN.search(last_name(test)))
        node = test.func if isinstance(test, ast.Call) else test
        if isinstance(test, ast.Call) and last_name(node) in ("len", "isinstance", "hasattr"):
            return False
        return bool(NOW_AND_THEN.search(last_name(node)))
