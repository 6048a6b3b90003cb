"""Faults: what a compiler might do wrong, each one small function.

A fault is written into a module of this package and found by its decorator:

    @fault(
        "gelu-by-tanh", families=("transformer",), kind="operator",
        defect="the error function of GELU is replaced by its approximation with tanh",
    )
    def gelu_by_tanh(graph: Graph, place: Place) -> int:
        return sum(instead(node, by_tanh) for node in named(graph, "gelu"))

It changes the graph of a compilation and says in how many places; a fault that changes nothing
where it should is an error of the catalogue. ``stage`` says which graph it gets:

- ``traced``: torch's functions, before gradients exist. What is changed here has the gradient of
  the changed computation, so it shows in forward and backward alike. Only these hold module-level
  names such as ``layer_norm``; the other graphs hold ATen's (``native_layer_norm``).
- ``forward``, ``backward``: ATen's operators after the split. The gradient stays that of the
  right computation when forward is changed, and the loss stays right when backward is.
- ``evaluation``: ATen's operators, compiled without gradients.
- ``optimizer``: torch's functions in the compiled step of an optimizer.
- ``ran forward``, ``ran backward``, ``ran evaluation``: not a graph but what runs it. The function
  takes the callable (a list of tensors in, a tuple of tensors out) and returns another one.

A fault from PyTorch's tracker names ``issue``, ``title`` (in our words), ``defect`` (what it did)
and ``same`` (how the mutation does the same). The others leave out issue, title and same.
``families`` are the models that it is tried on, ``precisions`` those that it can occur in.
``version`` is the PyTorch in which a live fault occurs, where it is an older one.
``random`` marks a fault in what is drawn: it is classed by whole runs and mean gradients alone,
since other numbers of the same distribution are no fault.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from benchmarks.equivalence import families
from benchmarks.equivalence.families import Family

STAGES = (
    "traced", "forward", "backward", "evaluation", "optimizer",
    "ran forward", "ran backward", "ran evaluation",
)  # fmt: skip
Change = Callable[[Any, "Place"], Any]


@dataclass(frozen=True)
class Place:
    """Which graph a fault is given."""

    stage: str
    number: int  # graphs compiled before it by the same compiler, in training and evaluation
    training: bool
    inputs: list[Any]  # examples of the graph's inputs
    memory: dict[str, Any]  # shared by all graphs of one compiler


@dataclass(frozen=True)
class Fault:
    """One fault of the catalogue; the package's text says what its fields mean."""

    name: str
    families: tuple[str, ...]
    kind: str
    defect: str
    change: Change | None = None
    stage: str = "traced"
    precisions: tuple[str, ...] = ("fp32", "bf16")
    issue: int | None = None
    title: str | None = None
    same: str | None = None
    random: bool = False
    half: str = ""
    version: str | None = None
    model: Callable[[Family], Family] | None = field(default=None, repr=False)

    @property
    def live(self) -> bool:
        """Whether the installed compiler has the fault itself, so that nothing is changed."""
        return self.change is None

    @functools.cached_property
    def source(self) -> str:
        """What tells the fault and the models that it is tried on from what they were."""
        text = inspect.getsource(self.change or inspect.getmodule(self.model))
        return hashlib.sha256((inspect.getsource(families) + text).encode()).hexdigest()[:12]


_known: dict[str, Fault] = {}


def fault(name: str, **stated: Any) -> Callable[[Change], Change]:
    """Enter a function into the catalogue under a name."""

    def enter(change: Change) -> Change:
        half = "second" if ".second" in change.__module__ else "first"
        enlist(Fault(name=name, change=change, half=half, **stated))
        return change

    return enter


def enlist(one: Fault) -> None:
    """Enter a fault. Raises ValueError for a name or stage that cannot be."""
    if one.name in _known:
        raise ValueError(f"fault {one.name}: another one has this name; choose another name")
    if one.stage not in STAGES:
        raise ValueError(f"fault {one.name}: stage {one.stage!r} is none of {', '.join(STAGES)}")
    _known[one.name] = one


def catalogue() -> tuple[Fault, ...]:
    """All faults of the package's modules, by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(_known[name] for name in sorted(_known))


def named(graph: Graph, *names: str) -> list[Node]:
    """Nodes that call a function or method of one of these names, in order."""
    return [node for node in graph.nodes if name_of(node) in names]


def name_of(node: Node) -> str:
    """The name of what a node calls, without overload; empty where it calls nothing."""
    if node.op == "call_method":
        return str(node.target)
    if node.op != "call_function":
        return ""
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", ""))


def after(node: Node, function: Callable[..., Any], *more: Any) -> int:
    """Let the node's value pass through a function, with more arguments, wherever it is used."""
    with node.graph.inserting_after(_last(node, more)):
        new = node.graph.call_function(function, (node, *more))
    node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    return 1


def instead(node: Node, function: Callable[..., Any]) -> int:
    """Call a function in the node's place, with the same arguments."""
    if node.op == "call_method":
        node.op = "call_function"
    node.target = function
    return 1


def given(node: Node, index: int, function: Callable[..., Any], *more: Any) -> int:
    """Let one argument of the node, and only there, pass through a function."""
    argument = node.args[index]
    with node.graph.inserting_before(node):
        node.update_arg(index, node.graph.call_function(function, (argument, *more)))
    return 1


def _last(node: Node, more: tuple[Any, ...]) -> Node:
    order = {one: place for place, one in enumerate(node.graph.nodes)}
    return max((node, *(one for one in more if isinstance(one, Node))), key=order.__getitem__)


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.change = change
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.change(gradient), None


class _Other(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, value: Tensor, _other: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient


def gradient(value: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """The value itself, whose gradient passes through a function. For the stage ``traced``."""
    return _Gradient.apply(value, change)


def as_if(value: Tensor, other: Tensor) -> Tensor:
    """The value of one tensor with the gradient of another. For the stage ``traced``."""
    return _Other.apply(value, other)
