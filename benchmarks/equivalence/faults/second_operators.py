"""Second half: faults of our own, by operator and family, by a reader who had not seen the check.

They are rare, late or small: one place of a tensor, one of two calls, odd sizes, later graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.nn import functional

from benchmarks.equivalence.faults import Place, after, fault, instead, name_of, named

Run = Callable[[list[Any]], Any]
LATE = 6  # calls of backward, over all graphs
EQUAL = 32  # equal indices that a kernel copes with
MOMENTUM = 0.1


def _part(node: Node, index: int) -> Node:
    """One of the results of an operator that has several."""
    return next(user for user in node.users if name_of(user) == "getitem" and user.args[1] == index)


def _tensors(values: list[Any]) -> list[int]:
    """Where in a list tensors are."""
    return [index for index, value in enumerate(values) if isinstance(value, Tensor)]


@fault(
    "late-gradient-halved", families=("recommender", "transformer"), kind="late",
    stage="ran backward",
    defect="from the sixth backward pass on, the first gradient is half of what it should be",
)  # fmt: skip
def late_gradient_halved(run: Run, place: Place) -> Run:
    """A counter over all graphs."""

    def halved(arguments: list[Any]) -> tuple[Any, ...]:
        values = list(run(arguments))
        place.memory["calls"] = place.memory.get("calls", 0) + 1
        if place.memory["calls"] >= LATE:
            first = _tensors(values)[0]
            values[first] = values[first] / 2
        return tuple(values)

    return halved


@fault(
    "second-micro-batch-lost", families=("convolutions", "diffusion"), kind="accumulation",
    stage="ran backward",
    defect="every second call of a backward graph returns zeros as its last gradient",
)  # fmt: skip
def second_micro_batch_lost(run: Run, _place: Place) -> Run:
    """As if it could not be added to what the first one left."""
    calls: list[None] = []

    def lost(arguments: list[Any]) -> tuple[Any, ...]:
        values = list(run(arguments))
        calls.append(None)
        if len(calls) % 2 == 0:
            last = _tensors(values)[-1]
            values[last] = torch.zeros_like(values[last])
        return tuple(values)

    return lost


@fault(
    "odd-batch-running-mean", families=("convolutions",), kind="stale buffer", stage="forward",
    defect="in batches of odd size, the last norm's running mean leaves the last sample out",
)  # fmt: skip
def odd_batch_running_mean(graph: Graph, _place: Place) -> int:
    """Gradients and loss are right."""

    def without_last(new: Tensor, x: Tensor, old: Tensor) -> Tensor:
        if x.shape[0] % 2 == 0:
            return new
        mean = x[:-1].to(old.dtype).mean(dim=(0, 2, 3))
        return (1 - MOMENTUM) * old + MOMENTUM * mean

    node = named(graph, "_native_batch_norm_legit_functional")[-1]
    return after(_part(node, 3), without_last, node.args[0], node.args[3])


@fault(
    "evaluated-last-row-repeated", families=("recommender",), kind="evaluation",
    stage="evaluation",
    defect="in evaluation the last sample's output is that of the one before",
)  # fmt: skip
def evaluated_last_row_repeated(graph: Graph, _place: Place) -> int:
    """One of a batch."""

    def repeated(output: Tensor) -> Tensor:
        return torch.cat([output[:-1], output[-2:-1]])

    return after(named(graph, "addmm")[-1], repeated)


@fault(
    "biases-summed-in-bf16", families=("transformer",), kind="reduction", stage="backward",
    precisions=("bf16",),
    defect="gradients of biases are summed over all words in bf16, each partial sum rounded",
)  # fmt: skip
def biases_summed_in_bf16(graph: Graph, _place: Place) -> int:
    """All sums over the rows of a matrix."""

    def coarse(x: Tensor, *_: Any, **__: Any) -> Tensor:
        total = torch.zeros_like(x[:1])
        for row in x.split(1):
            total = (total + row).to(torch.bfloat16).to(x.dtype)
        return total

    sums = [node for node in named(graph, "sum") if list(node.args[1:2]) == [[0]]]
    biases = [node for node in sums if node.args[0].meta["val"].dim() == 2]
    return sum(instead(node, coarse) for node in biases)


@fault(
    "optimizer-last-element", families=("recommender", "recurrent"), kind="tail",
    stage="optimizer",
    defect="the last element of the last matrix is never updated",
)  # fmt: skip
def optimizer_last_element(graph: Graph, _place: Place) -> int:
    """One weight in the model."""

    def but_last(weight: Tensor, moment: Tensor, denominator: Tensor) -> Tensor:
        last = torch.arange(weight.numel(), device=weight.device) == weight.numel() - 1
        update = (moment / denominator).masked_fill(last.view(weight.shape), 0.0)
        return weight.add_(update)

    return instead(named(graph, "addcdiv_")[-2], but_last)


@fault(
    "dropped-by-sample", families=("transformer",), kind="random numbers", stage="forward",
    random=True,
    defect="dropout draws one number for each sample, which drops all of it or nothing",
)  # fmt: skip
def dropped_by_sample(graph: Graph, _place: Place) -> int:
    """Every place is dropped with the right chance, and new numbers are drawn each time."""

    def together(x: Tensor, share: float, _train: bool) -> tuple[Tensor, Tensor]:
        drawn = torch.rand(len(x), *[1] * (x.dim() - 1), device=x.device)
        mask = (drawn >= share).expand(x.shape).contiguous()
        return x * mask / (1 - share), mask

    return sum(instead(node, together) for node in named(graph, "native_dropout"))


@fault(
    "one-key-hidden", families=("transformer",), kind="mask",
    defect="in one head of the last layer, the last query does not see the first key",
)  # fmt: skip
def one_key_hidden(graph: Graph, _place: Place) -> int:
    """One of a thousand scores."""

    def hiding(scores: Tensor) -> Tensor:
        hidden = torch.zeros(scores.shape[-3:], dtype=torch.bool, device=scores.device)
        hidden[-1, -1, 0] = True
        return scores.masked_fill(hidden, float("-inf"))

    return after(named(graph, "masked_fill")[-1], hiding)


@fault(
    "counted-twice-when-recompiled", families=("recurrent",), kind="recompiled graph",
    defect="graphs that are compiled later add two to the counter",
)  # fmt: skip
def counted_twice_when_recompiled(graph: Graph, place: Place) -> int:
    """A buffer, and from the next step on the penalty."""
    additions = named(graph, "add") if place.number else []
    counters = [node for node in additions if node.args[1] == 1]
    for node in counters:
        node.update_arg(1, 2)
    return len(counters)


@fault(
    "one-tap-without-gradient", families=("convolutions", "diffusion"), kind="missing gradient",
    stage="backward",
    defect="the last element of one convolution's kernel gets no gradient",
)  # fmt: skip
def one_tap_without_gradient(graph: Graph, _place: Place) -> int:
    """One of some thousands."""

    def without_last(kernel: Tensor) -> Tensor:
        new = kernel.clone()
        new[-1, -1, -1, -1] = 0
        return new

    return after(_part(named(graph, "convolution_backward")[1], 1), without_last)


@fault(
    "popular-rows-cut", families=("recommender",), kind="index", stage="backward",
    defect="of more than 32 equal indices in a batch, those after the 32nd give no gradient",
)  # fmt: skip
def popular_rows_cut(graph: Graph, _place: Place) -> int:
    """Only the most popular values of large batches are so many."""

    def cut(grad: Tensor, places: Tensor, *more: Any) -> Tensor:
        flat = places.flatten()
        before = (flat[:, None] == flat[None, :]).tril(-1).sum(dim=1)
        kept = (before < EQUAL).view(places.shape).unsqueeze(-1)
        return torch.ops.aten.embedding_dense_backward(grad * kept, places, *more)

    return sum(instead(node, cut) for node in named(graph, "embedding_dense_backward"))


@fault(
    "last-norm-by-one-less", families=("transformer",), kind="reduction",
    defect="the last layer norm divides its variance by the number of features less one",
)  # fmt: skip
def last_norm_by_one_less(graph: Graph, _place: Place) -> int:
    """As a sample's variance is estimated elsewhere."""

    def unbiased(x: Tensor, _shape: Any, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        x = x.to(weight.dtype)
        variance = x.var(dim=-1, keepdim=True)
        return (x - x.mean(dim=-1, keepdim=True)) * (variance + epsilon).rsqrt() * weight + bias

    return instead(named(graph, "layer_norm")[-1], unbiased)


@fault(
    "evaluated-loss-overwritten", families=("recommender", "convolutions"), kind="aliasing",
    stage="ran evaluation",
    defect="every evaluation of a batch returns its loss in the same memory",
)  # fmt: skip
def evaluated_loss_overwritten(run: Run, place: Place) -> Run:
    """Right as long as one loss is read before the next is computed."""

    def static(arguments: list[Any]) -> tuple[Any, ...]:
        values = list(run(arguments))
        for index in _tensors(values):
            if values[index].dim() == 0 and values[index].is_floating_point():
                one = place.memory.setdefault(index, values[index].clone())
                values[index] = one.copy_(values[index])
        return tuple(values)

    return static


@fault(
    "gate-gradient-lane", families=("recurrent",), kind="tail", stage="backward",
    defect="the last feature of one gate gets no gradient in the last time step",
)  # fmt: skip
def gate_gradient_lane(graph: Graph, _place: Place) -> int:
    """The first sigmoid of the backward pass."""

    def without_last(grad: Tensor) -> Tensor:
        return torch.cat([grad[..., :-1], torch.zeros_like(grad[..., -1:])], dim=-1)

    return after(named(graph, "sigmoid_backward")[0], without_last)


@fault(
    "cast-of-weight-kept", families=("transformer", "convolutions"), kind="cast", stage="forward",
    precisions=("bf16",),
    defect="the copy in bf16 of one weight is made once and used for the whole training",
)  # fmt: skip
def cast_of_weight_kept(graph: Graph, place: Place) -> int:
    """The last matrix, whose copy autocast should make anew in each step."""

    def kept(weight: Tensor) -> Tensor:
        return place.memory.setdefault("copy", weight.clone())

    casts = [
        node
        for node in named(graph, "_to_copy")
        if node.args[0].op == "placeholder" and node.meta["val"].dim() > 1
    ]
    return after(casts[-1], kept) if casts else 0


@fault(
    "huge-logits-clamped", families=("convolutions",), kind="operator",
    defect="what the loss sees of a logit above three is three, with its gradient",
)  # fmt: skip
def huge_logits_clamped(graph: Graph, _place: Place) -> int:
    """Without effect on fresh weights, whose logits are small."""

    def clamped(logits: Tensor, *more: Any, **named_more: Any) -> Tensor:
        return functional.cross_entropy(logits.clamp(max=3.0), *more, **named_more)

    return sum(instead(node, clamped) for node in named(graph, "cross_entropy"))
