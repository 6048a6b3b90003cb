"""The code that a compiler compiles: forward methods, and functions that are compiled by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

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
)
from compilegate_doctor.words import MODULE_CLASS

MODULES = ("Module", "PreTrainedModel", "LightningModule", "GenerationMixin")
COMPILE = "torch.compile"
DISABLED = ("disable", "disallow_in_graph", "ignore", "unused")
TRACING = ("is_scripting", "is_tracing", "is_compiling", "is_dynamo_compiling",
           "is_torchdynamo_compiling", "is_exporting", "is_in_onnx_export",
           "is_torch_fx_proxy")  # fmt: skip
# Classes whose forward is for inference alone.
INFERS = re.compile(r"(Search(er)?|SafetyChecker|Predictor|Inference|NMS)$|PostProcess|Pipeline")
DEEP = 5


class Models:
    """Classes with a forward method, and what each forward runs."""

    def __init__(self, source: Source) -> None:
        self._source = source
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
        }  # fmt: skip
        return parameters | buffers

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
            if isinstance(method, FUNCTIONS) and method.name == "forward"
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
        return [(body, node) for body in self.bodies for node in self._block(body.body)]

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
        for node in self._block(function.body):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if dotted(node.func.value) == "self" and isinstance(holder, ast.ClassDef):
                yield from (
                    item for item in holder.body
                    if isinstance(item, FUNCTIONS) and item.name == node.func.attr
                )  # fmt: skip

    def _block(self, statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
        """Code of a training forward: branches for inference and export are left out."""
        for statement in statements:
            if isinstance(statement, SCOPES):
                continue
            if not isinstance(statement, ast.If):
                yield from self._parts(statement)
                continue
            if any(called(call) in TRACING for call in calls_in(statement.test)):
                continue
            mode = _training_mode(statement.test)
            if mode is not False:
                yield statement
                yield from in_scope(statement.test)
            if mode is not False and not isinstance(statement.body[-1], ast.Raise):
                yield from self._block(statement.body)
            if mode is not True:
                yield from self._block(statement.orelse)

    def _parts(self, statement: ast.stmt) -> Iterator[ast.AST]:
        yield statement
        for child in ast.iter_child_nodes(statement):
            if not isinstance(child, ast.stmt | ast.ExceptHandler):
                yield from in_scope(child)
        for name in ("body", "orelse", "finalbody"):
            yield from self._block(getattr(statement, name, []))


def _training_mode(test: ast.expr) -> bool | None:
    """True where a branch is for training, False where it is for inference, None for both."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        mode = _training_mode(test.operand)
        return None if mode is None else not mode
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        modes = [_training_mode(item) for item in test.values]
        return False if False in modes else None
    return True if dotted(test) == "self.training" else None
