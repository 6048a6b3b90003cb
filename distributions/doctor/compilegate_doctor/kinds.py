"""Which expressions hold a tensor on the device, statement by statement.

An expression counts as a tensor only where the code says so: a missed finding is better than a
false alarm.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from compilegate_doctor import words
from compilegate_doctor.models import Models
from compilegate_doctor.source import Source
from compilegate_doctor.steps import Steps
from compilegate_doctor.syntax import (
    FUNCTIONS,
    Function,
    called,
    dotted,
    in_scope,
    keyword,
    last_name,
    receiver,
)
from compilegate_doctor.words import LOSS, MAKES_MODEL, MODEL, NO_MODEL


class Kind(Enum):
    """What an expression is: on the device, a collection of such, a model, certainly neither."""

    TENSOR = 1
    SEVERAL = 2
    MODEL = 3
    HOST = 4


def joined(parts: Sequence[Kind | None]) -> Kind | None:
    """What an operation on several expressions gives."""
    if Kind.SEVERAL in parts:
        return Kind.SEVERAL
    return Kind.TENSOR if Kind.TENSOR in parts else None


def operated(parts: Sequence[Kind | None]) -> Kind | None:
    """As ``joined``; what is computed from plain values alone is one."""
    return Kind.HOST if parts and {*parts} == {Kind.HOST} else joined(parts)


def element(kind: Kind | None) -> Kind | None:
    """What one item of something is."""
    return Kind.TENSOR if kind is Kind.SEVERAL else kind


def of_torch_call(call: ast.Call, meaning: str, arguments: Sequence[Kind | None]) -> Kind | None:
    """What a function of PyTorch returns, from the kinds of its arguments."""
    if meaning in words.MODEL_MAKERS or words.MODULE_CLASS.match(meaning):
        return Kind.MODEL
    if meaning in words.TENSOR_MAKERS:
        device = keyword(call, "device")
        place = device.value if isinstance(device, ast.Constant) else device
        on_host = place is None or place == "cpu"
        return Kind.HOST if on_host and Kind.TENSOR not in arguments else Kind.TENSOR
    if meaning.startswith(words.NO_TENSORS):
        return None
    certain = meaning.startswith("torch.nn.functional.")
    return Kind.TENSOR if certain or joined(arguments) else None


def of_method_call(call: ast.Call, on: Kind | None) -> Kind | None:
    """What a method returns, from what it is called on; None where that says nothing."""
    name = called(call)
    if name in ("to", "cuda"):
        if on is Kind.MODEL:
            return Kind.MODEL
        place = ast.unparse(call.args[0]) if call.args else "cuda" if name == "cuda" else ""
        if place in ("'cpu'", "torch.device('cpu')"):
            return Kind.HOST
        return Kind.TENSOR if on is Kind.TENSOR or words.DEVICE.search(place) else on
    if on is Kind.TENSOR or name in words.ALWAYS_TO_HOST:
        cast = name == "type" and bool(call.args)  # without a type it says which the tensor has
        return Kind.HOST if name in words.TO_HOST and not cast else Kind.TENSOR if on else None
    if on is Kind.MODEL:
        return Kind.MODEL if name in words.SAME_MODEL else None
    return on


DEEP = 4
Scope = dict[str, Kind | None]


class Kinds:
    """Kinds of all expressions of a script."""

    def __init__(self, source: Source, steps: Steps, models: Models) -> None:
        self._source, self._steps, self._models = source, steps, models
        self._kinds: dict[ast.AST, Kind] = {}
        self._returns: dict[ast.AST, Kind | None] = {}
        self._return_parts: dict[ast.AST, list[Kind | None]] = {}
        self._losses = {
            dotted(node)
            for call in source.calls if called(call) == "backward"
            for node in (receiver(call), *call.args) if node is not None and dotted(node)
        }  # fmt: skip
        self._forwards = set(models.bodies)
        self._function_depth = 0
        self._block(source.tree.body, dict.fromkeys(models.of_trainers, Kind.HOST))

    def of(self, node: ast.AST) -> Kind | None:
        """The kind of an expression."""
        return self._kinds.get(node)

    def _block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        functions: list[Function] = []
        for statement in statements:
            if isinstance(statement, FUNCTIONS):
                functions.append(statement)
            else:
                self._statement(statement, scope)
        for function in functions:  # closures see what the function around them ends up with
            self._function(function, scope)

    def _function(self, function: Function, around: Scope) -> None:
        if function in self._returns:
            return
        self._returns[function] = None
        scope: Scope = dict(around)
        parameters = function.args
        for item in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
            scope[item.arg] = None
        if function in self._forwards:
            scope |= dict.fromkeys(
                words.tensor_parameters(function, self._models.is_layer), Kind.TENSOR
            )
        self._block(function.body, scope)
        values = [
            node.value for node in in_scope(function)
            if isinstance(node, ast.Return) and node.value is not None
        ]  # fmt: skip
        self._returns[function] = operated([self._kinds.get(value) for value in values])
        for value in values:
            if isinstance(value, ast.Tuple):
                self._return_parts[function] = [self._kinds.get(item) for item in value.elts]

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.ClassDef):
            self._block(node.body, dict(scope))
        elif isinstance(node, ast.Assign):
            kind = self._kind(node.value, scope)
            for target in node.targets:
                self._bind(target, node.value, kind, scope)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, node.value, self._kind(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            both = (self._kind(node.target, scope), self._kind(node.value, scope))
            self._bind(node.target, None, operated(both), scope)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._bind(node.target, None, element(self._kind(node.iter, scope)), scope)
            self._block([*node.body, *node.orelse], scope)
        else:
            self._compound(node, scope)

    def _compound(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.If):
            self._kind(node.test, scope)
            other = dict(scope)
            if (number := words.plain_number(node.test)) in scope:
                scope[number] = Kind.HOST
            self._block(node.body, scope)
            self._block(node.orelse, other)
            for name, kind in other.items():  # a tensor in either branch may be one after it
                if scope.get(name) is None or kind is Kind.TENSOR:
                    scope[name] = kind
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._kind(child, scope)
            elif isinstance(child, ast.withitem):
                self._kind(child.context_expr, scope)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                self._block(child.body, scope)
            elif isinstance(child, ast.stmt):
                self._block([child], scope)

    def _bind(
        self, target: ast.expr, value: ast.expr | None, kind: Kind | None, scope: Scope
    ) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            size = len(target.elts)
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            kinds = self._parts(value, size) or [element(kind)] * size
            for index, item in enumerate(target.elts):
                part = values[index] if len(values) == size else None
                self._bind(item, part, kinds[index], scope)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, None, kind, scope)
        elif dotted(target):
            # One of several results may be a plain number, and is named like one.
            number = value is None and words.NUMBER.search(last_name(target))
            scope[dotted(target)] = None if number else kind

    def _parts(self, value: ast.expr | None, size: int) -> list[Kind | None]:
        """The kinds of several values that are assigned at once, empty where they are not known."""
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == size:
            return [self._kinds.get(item) for item in value.elts]
        if isinstance(value, ast.Call):
            for function in self._steps.targets(value):
                parts = self._return_parts.get(function, [])
                if len(parts) == size:
                    return parts
        return []

    def _kind(self, node: ast.AST, scope: Scope) -> Kind | None:
        if isinstance(node, ast.Lambda):
            return None
        kind = self._judge(node, scope)
        if kind is not None:
            self._kinds[node] = kind
        return kind

    def _judge(self, node: ast.AST, scope: Scope) -> Kind | None:
        if isinstance(node, ast.Constant):
            return Kind.HOST
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._name(node, scope)
        return self._combined(node, scope)

    def _combined(self, node: ast.AST, scope: Scope) -> Kind | None:
        parts = [
            self._kind(child, scope) for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        ]  # fmt: skip
        for comprehension in getattr(node, "generators", ()):
            self._kind(comprehension.iter, scope)
        if words.about_no_tensor(node):
            return Kind.HOST
        if isinstance(node, ast.Subscript):
            return element(parts[0]) if parts[0] is not Kind.MODEL else None
        if isinstance(node, ast.Tuple | ast.List):
            return Kind.SEVERAL if joined(parts) else None
        return operated(parts) if isinstance(node, words.COMBINING) else None

    def _name(self, node: ast.Name | ast.Attribute, scope: Scope) -> Kind | None:
        name = dotted(node)
        if name in scope and scope[name] is not None:
            return scope[name]
        if isinstance(node, ast.Attribute):
            base = self._kind(node.value, scope)
            if base is Kind.TENSOR:
                return Kind.HOST if words.asks_about(node.attr) else Kind.TENSOR
            if base is Kind.HOST:
                return None
        if name in self._models.weights:
            return Kind.TENSOR
        if name in self._losses and LOSS.search(last_name(node)):
            return Kind.TENSOR
        return Kind.MODEL if MODEL.search(last_name(node)) else None

    def _call(self, call: ast.Call, scope: Scope) -> Kind | None:
        arguments = [self._kind(item, scope) for item in call.args]
        arguments += [self._kind(item.value, scope) for item in call.keywords]
        meaning = self._source.called(call)
        if meaning in words.HOST_FUNCTIONS:
            return Kind.HOST
        if meaning.startswith("torch."):
            return of_torch_call(call, meaning, arguments)
        if meaning.startswith(("numpy.", "random.", "math.", "time.")):
            return Kind.HOST
        on = receiver(call)
        if on is not None:
            kind = of_method_call(call, self._kind(on, scope))
            if kind is not None:
                return kind
        return self._own(call, scope, arguments)

    def _own(self, call: ast.Call, scope: Scope, arguments: list[Kind | None]) -> Kind | None:
        """A call of something that the script defines, or of a model."""
        if self._makes_model(call, arguments):
            return Kind.MODEL
        named = NO_MODEL.match(last_name(call.func))
        if not named and self._kind(call.func, scope) is Kind.MODEL:
            return Kind.TENSOR
        returned = self._returned(call, scope)
        if returned or self._steps.targets(call):
            return returned
        if named and MODEL.search(last_name(call.func)):
            return Kind.HOST  # data_generator(), is_model()
        takes_tensor = dotted(call.func).startswith("self.") and Kind.TENSOR in arguments
        layer = self._models.is_layer(call) or takes_tensor
        return Kind.TENSOR if layer else None

    def _makes_model(self, call: ast.Call, arguments: Sequence[Kind | None]) -> bool:
        name = last_name(call.func)
        built = MAKES_MODEL.match(name) and MODEL.search(name)
        loaded = name == "from_pretrained" and "Model" in dotted(call.func)
        own = any(item.name == name for item in self._models.classes)
        return bool(built or loaded or own or (name == "prepare" and [*arguments] == [Kind.MODEL]))

    def _returned(self, call: ast.Call, scope: Scope) -> Kind | None:
        """What the script's own function returns."""
        kinds = []
        self._function_depth += 1
        if self._function_depth <= DEEP:
            for function in self._steps.targets(call):
                self._function(function, scope)
                kinds.append(self._returns.get(function))
        self._function_depth -= 1
        return operated(kinds)
