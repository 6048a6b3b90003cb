"""The code that a compiler compiles: forward methods, and functions that are compiled by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from compilegate_doctor.options import Guards
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import (
    FUNCTIONS,
    SCOPES,
    Function,
    called,
    calls_in,
    constant,
    dotted,
    in_scope,
    last_name,
    with_defaults,
)
from compilegate_doctor.words import MODULE_CLASS, about_no_tensor, asks_for_cache

MODULES = ("Module", "PreTrainedModel", "LightningModule", "GenerationMixin")
COMPILE = "torch.compile"
DISABLED = ("disable", "disallow_in_graph", "ignore", "unused")
TRACING = ("is_scripting", "is_tracing", "is_compiling", "is_dynamo_compiling",
           "is_torchdynamo_compiling", "is_exporting", "is_in_onnx_export",
           "is_torch_fx_proxy")  # fmt: skip
# Classes whose forward is for inference alone.
INFERS = re.compile(
    r"(Search(er)?|Sampler|SafetyChecker|Predictor|Inference|NMS|Clustering)$|"
    r"PostProcess|Pipeline|Greedy|Beam|KVCache"
)
# Methods that a forward calls for inference, to set something up, or to look at itself.
FOR_INFERENCE = re.compile(
    r"(^|_)(infer\w*|generate|greedy|beam|reverse|export|onnx|"
    r"regist\w*|hooks?|set_?up|init\w*|reset|profile|debug)(_|$)"
)
TRAINS = re.compile(r"loss|train")
DEEP = 5


class Models:
    """Classes with a forward method, and what each forward runs."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._guards = Guards(source.options)
        self._classes = {node.name: node for node in source.nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def classes(self) -> set[ast.ClassDef]:
        """The classes that are PyTorch modules."""
        return {
            node for name, node in self._classes.items()
            if self._is_module(node) and not INFERS.search(name)
        }  # fmt: skip

    @cached_property
    def layers(self) -> set[str]:
        """Attributes that are modules: calling one gives a tensor."""
        return {name for name, value in self._attributes() if self._makes_module(value)}

    @cached_property
    def weights(self) -> set[str]:
        """Attributes that are tensors: parameters and buffers."""
        parameters = {
            name for name, value in self._attributes()
            if isinstance(value, ast.Call) and called(value) == "Parameter"
        }  # fmt: skip
        buffers = {
            f"self.{constant(call.args[0])}" for call in self._source.calls
            if called(call) == "register_buffer" and call.args
            and not isinstance(call.args[-1], ast.Constant)
        }  # fmt: skip
        return (parameters | buffers) - self.of_trainers

    @cached_property
    def of_trainers(self) -> set[str]:
        """Buffers of a class that trains a model itself: nothing places them on the device."""
        return {
            f"self.{constant(call.args[0])}" for holder in self._classes.values()
            if "backward" in (names := {called(call) for call in _calls(holder)})
            for call in _calls(holder) if called(call) == "register_buffer" and call.args
            and names.isdisjoint(("to", "cuda"))
        }  # fmt: skip

    def is_layer(self, call: ast.Call) -> bool:
        """Whether a call runs a module or a function of ``torch.nn.functional``."""
        functional = self._source.called(call).startswith("torch.nn.functional.")
        return functional or dotted(call.func) in self.layers

    @cached_property
    def keras_fits(self) -> bool:
        """Whether Keras runs the loop."""
        return self._source.uses("tensorflow", "keras") and any(
            called(call) == "fit" and isinstance(call.func, ast.Attribute)
            for call in self._source.calls
        )

    @cached_property
    def compile_calls(self) -> list[ast.Call]:
        """Calls of ``torch.compile``."""
        return [call for call in self._source.calls if self._source.called(call) == COMPILE]

    @cached_property
    def whole_graph(self) -> bool:
        """Whether a graph break is an error here, because of ``fullgraph=True``."""
        return any(
            item.arg == "fullgraph" and isinstance(item.value, ast.Constant) and item.value.value
            for call in self._source.calls
            if self._source.called(call) == COMPILE or called(call) == "compile"
            for item in call.keywords
        )

    @cached_property
    def bodies(self) -> list[Function]:
        """Functions whose code ends in a graph, callers before what they call."""
        functions = [
            method for node in self.classes for method in node.body
            if isinstance(method, FUNCTIONS) and method.name == "forward" and _computes(method)
        ]  # fmt: skip
        named = {dotted(call.args[0]) for call in self.compile_calls if call.args}
        for function in self._source.functions:
            decorated = any(self._compiles(item) for item in function.decorator_list)
            if decorated or (function.name in named and function not in functions):
                functions.append(function)
        for function in functions:
            functions.extend(item for item in self._reached(function) if item not in functions)
        kept = [function for function in functions if not self._disabled(function)]
        return sorted(kept, key=lambda function: function.lineno)

    @cached_property
    def nodes(self) -> list[tuple[Function, ast.AST]]:
        """Every piece of code that ends in a graph, with the function it is in."""
        return [(body, node) for body in self.bodies for node in self._block(body.body, _off(body))]

    def _attributes(self) -> Iterator[tuple[str, ast.expr]]:
        for node in self._source.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                yield dotted(node.targets[0]), node.value

    def _makes_module(self, value: ast.expr) -> bool:
        if not isinstance(value, ast.Call) or called(value) in ("Parameter", "Buffer"):
            return False
        own = self._classes.get(last_name(value.func)) in self.classes
        return own or bool(MODULE_CLASS.match(self._source.called(value)))

    def _is_module(self, node: ast.ClassDef, depth: int = 0) -> bool:
        for base in node.bases:
            name = last_name(base)
            local = self._classes.get(name)
            if name in MODULES or name.endswith("PreTrainedModel"):
                return not self._source.meaning(base).startswith(("flax", "keras", "tensorflow"))
            own = local is not None and local is not node and depth < DEEP
            if own and self._is_module(self._classes[name], depth + 1):
                return True
        return False

    def _compiles(self, decorator: ast.expr) -> bool:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self._source.meaning(function) == COMPILE

    @staticmethod
    def _disabled(function: Function) -> bool:
        names = [item.func if isinstance(item, ast.Call) else item for item in
                 function.decorator_list]  # fmt: skip
        return any(last_name(name) in DISABLED for name in names)

    def _reached(self, function: Function) -> Iterator[Function]:
        holder = self._source.parents.get(function)
        for node in self._block(function.body, _off(function)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if dotted(node.func.value) == "self" and isinstance(holder, ast.ClassDef):
                yield from (
                    item for item in holder.body
                    if isinstance(item, FUNCTIONS) and item.name == node.func.attr
                    and not FOR_INFERENCE.search(item.name)
                )  # fmt: skip

    def _block(
        self, statements: Sequence[ast.stmt], off: Mapping[str, object]
    ) -> Iterator[ast.AST]:
        """Code of a training forward: branches for inference and export are left out.

        So are what ``off`` switches, and what only the first call sets up.
        """
        for statement in statements:
            if isinstance(statement, SCOPES):
                continue
            if not isinstance(statement, ast.If):
                yield from self._parts(statement, off)
                continue
            if any(called(call) in TRACING for call in calls_in(statement.test)):
                continue
            mode = _training_mode(statement.test, off)
            mode = self._guards.decided(statement.test) if mode is None else mode
            if mode is None:
                yield statement
                yield from self._asked(statement.test, off)
            sure = mode is True or (mode is None and self._guards.usual(statement.test))
            rare = isinstance(statement.body[-1], ast.Raise) or _sets_up(statement)
            if sure and not rare:
                yield from self._block(statement.body, off)
            if mode is False:
                yield from self._block(statement.orelse, off)

    def _asked(self, test: ast.expr, off: Mapping[str, object]) -> Iterator[ast.AST]:
        """A condition as far as it is sure to be computed: ``a and b`` asks b where a holds."""
        if not isinstance(test, ast.BoolOp):
            yield from in_scope(test)
            return
        goes_on = isinstance(test.op, ast.And)
        for item in test.values:
            yield from self._asked(item, off)
            mode = _training_mode(item, off)
            if (self._guards.usual(item) if mode is None else mode) is not goes_on:
                return

    def _parts(self, statement: ast.stmt, off: Mapping[str, object]) -> Iterator[ast.AST]:
        yield statement
        for child in ast.iter_child_nodes(statement):
            if not isinstance(child, ast.stmt | ast.ExceptHandler):
                yield from in_scope(child)
        for name in ("body", "orelse", "finalbody"):
            yield from self._block(getattr(statement, name, []), off)


def _calls(node: ast.AST) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _computes(forward: Function) -> bool:
    """Whether it gives a result: an average of weights does not, nor what trains a model itself."""
    nodes = list(in_scope(forward))
    gives = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return gives and not any(called(call) == "backward" for call in calls_in(forward))


def _off(function: Function) -> dict[str, object]:
    """Parameters that choose something beside training, such as a cache, and what they are."""
    return {
        item.arg: default.value for item, default in with_defaults(function.args)
        if isinstance(default, ast.Constant) and isinstance(default.value, bool | str)
        and not TRAINS.search(item.arg)
    }  # fmt: skip


def _sets_up(branch: ast.If) -> bool:
    """``if self.table is None: self.table = …`` runs in the first call alone."""
    asked = {dotted(node) for node in ast.walk(branch.test)}
    return about_no_tensor(branch.test) and any(
        isinstance(node, ast.Assign) and dotted(node.targets[0]) in asked
        and dotted(node.targets[0]).startswith("self.")
        for node in in_scope(branch)
    )  # fmt: skip


def _training_mode(test: ast.expr, off: Mapping[str, object]) -> bool | None:
    """True where a branch is for training, False where it is for inference, None for both."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        mode = _training_mode(test.operand, off)
        return None if mode is None else not mode
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        modes = [_training_mode(item, off) for item in test.values]
        return False if False in modes else None
    if isinstance(test, ast.BoolOp):
        return True if _training_mode(test.values[0], off) is True else None
    if isinstance(test, ast.Compare):
        return _compared(test, off)
    if off.get(dotted(test)) is False:
        return False
    return True if dotted(test) == "self.training" else None


def _compared(test: ast.Compare, off: Mapping[str, object]) -> bool | None:
    """As ``_training_mode``, of ``mode == "cpu"``, ``self.training is True``, a cache."""
    value, name = constant(test.comparators[0]), dotted(test.left)
    same = isinstance(test.ops[0], ast.Eq | ast.Is)
    if name == "self.training" and isinstance(value, bool):
        return value is same
    if name in off and isinstance(value, str):
        return (off[name] == value) is same
    return False if asks_for_cache(test) else None
