"""First half: faults that only some data show, in few rows or few batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.nn import functional

from benchmarks.equivalence.families import IGNORED
from benchmarks.equivalence.faults import Place, after, fault, gradient, instead, named

RARE = 117  # of 120 values; one of them is in some batches and not in others
SATURATED = 2.0  # few of a recurrent cell's gates are beyond it


def _looked_up(graph: Graph, change: Any) -> int:
    nodes: list[Node] = named(graph, "embedding")
    return sum(after(node, change, node.args[0]) for node in nodes)


@fault(
    "rare-ids-without-gradient", families=("recommender",), kind="missing gradient",
    defect="the last rows of an embedding, which few batches look up, get no gradient",
)  # fmt: skip
def rare_ids_without_gradient(graph: Graph, _place: Place) -> int:
    """All tables."""

    def without(rows: Tensor, ids: Tensor) -> Tensor:
        return gradient(rows, lambda passed: passed * (ids < RARE)[..., None])

    return _looked_up(graph, without)


@fault(
    "rare-ids-tripled", families=("recommender",), kind="indexing",
    defect="the last rows of an embedding, which few batches look up, are read tripled",
)  # fmt: skip
def rare_ids_tripled(graph: Graph, _place: Place) -> int:
    """All tables; their gradient triples with them."""

    def tripled(rows: Tensor, ids: Tensor) -> Tensor:
        return torch.where((ids >= RARE)[..., None], 3 * rows, rows)

    return _looked_up(graph, tripled)


@fault(
    "last-place-dropped-if-first-row-is-full", families=("transformer",), kind="mask",
    defect="where the first sentence of a batch is full, the last target of every row is ignored",
)  # fmt: skip
def last_place_dropped(graph: Graph, _place: Place) -> int:
    """A flattened mask of which one row is right."""

    def dropped(logits: Tensor, target: Tensor, **more: Any) -> Tensor:
        rows = target.unflatten(0, (-1, 16))
        last = (torch.arange(16, device=target.device) == 15) & (rows[0, -1] != IGNORED)
        return functional.cross_entropy(logits, rows.masked_fill(last, IGNORED).flatten(), **more)

    return sum(instead(node, dropped) for node in named(graph, "cross_entropy"))


@fault(
    "saturated-gates-without-gradient", families=("recurrent",), kind="missing gradient",
    defect="a sigmoid beyond 2 passes no gradient",
)  # fmt: skip
def saturated_gates_without_gradient(graph: Graph, _place: Place) -> int:
    """All gates."""

    def saturated(x: Tensor) -> Tensor:
        return torch.sigmoid(gradient(x, lambda passed: passed * (x.detach().abs() < SATURATED)))

    return sum(instead(node, saturated) for node in named(graph, "sigmoid"))


@fault(
    "smoothing-lost-without-the-last-class", families=("convolutions",), kind="operator",
    defect="where a batch lacks the last class, the loss is computed without label smoothing",
)  # fmt: skip
def smoothing_lost(graph: Graph, _place: Place) -> int:
    """The loss."""

    def without(logits: Tensor, target: Tensor, label_smoothing: float = 0.0) -> Tensor:
        smooth = functional.cross_entropy(logits, target, label_smoothing=label_smoothing)
        return torch.where((target == 7).any(), smooth, functional.cross_entropy(logits, target))

    return sum(instead(node, without) for node in named(graph, "cross_entropy"))
