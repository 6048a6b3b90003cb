"""First half: faults of our own, by operator and family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph
from torch.nn import functional

from benchmarks.equivalence.faults import (
    Place,
    after,
    as_if,
    fault,
    given,
    gradient,
    instead,
    named,
)

SIZES = {"convolutions": 16, "recurrent": 16}  # batch sizes that graphs are compiled for first
COARSE = 1e-3  # an epsilon a hundred times the usual


@fault(
    "mask-off-by-one", families=("transformer",), kind="mask",
    defect="the causal mask lets every place see the next one",
)  # fmt: skip
def mask_off_by_one(graph: Graph, _place: Place) -> int:
    """The first diagonal above the main one is open."""

    def later(mask: Tensor) -> Tensor:
        return mask.triu(2)

    return sum(given(node, 1, later) for node in named(graph, "masked_fill"))


@fault(
    "layer-norm-epsilon", families=("transformer", "diffusion"), kind="epsilon",
    defect="layer norm's epsilon is 1e-3 instead of 1e-5",
)  # fmt: skip
def layer_norm_epsilon(graph: Graph, _place: Place) -> int:
    """All layer norms."""

    def coarse(
        x: Tensor, shape: Any, weight: Any = None, bias: Any = None, *_: Any, **__: Any
    ) -> Tensor:
        return functional.layer_norm(x, shape, weight, bias, COARSE)

    return sum(instead(node, coarse) for node in named(graph, "layer_norm"))


@fault(
    "batch-norm-epsilon", families=("convolutions",), kind="epsilon",
    defect="batch norm's epsilon is 1e-2 instead of 1e-5",
)  # fmt: skip
def batch_norm_epsilon(graph: Graph, _place: Place) -> int:
    """All batch norms, in training and evaluation."""
    for node in named(graph, "batch_norm"):
        node.update_arg(7, 10 * COARSE)
    return len(named(graph, "batch_norm"))


@fault(
    "gelu-by-tanh", families=("transformer",), kind="operator",
    defect="the error function of GELU is replaced by its approximation with tanh",
)  # fmt: skip
def gelu_by_tanh(graph: Graph, _place: Place) -> int:
    """All of them."""

    def by_tanh(x: Tensor, **_: Any) -> Tensor:
        return functional.gelu(x, approximate="tanh")

    return sum(instead(node, by_tanh) for node in named(graph, "gelu"))


def _rounded(x: Tensor) -> Tensor:
    """Rounded to bf16; the gradient passes."""
    return as_if(x.detach().bfloat16().to(x.dtype), x)


@fault(
    "softmax-in-bf16", families=("transformer",), kind="cast",
    defect="softmax, which a bf16 job computes in single precision, is rounded to bf16",
)  # fmt: skip
def softmax_in_bf16(graph: Graph, _place: Place) -> int:
    """What goes into it and what comes out."""
    nodes = named(graph, "softmax")
    return sum(given(node, 0, _rounded) + after(node, _rounded) for node in nodes)


@fault(
    "logits-in-bf16", families=("transformer", "convolutions"), kind="cast",
    defect="the logits are rounded to bf16 before the loss",
)  # fmt: skip
def logits_in_bf16(graph: Graph, _place: Place) -> int:
    """The first argument of the loss."""
    return sum(given(node, 0, _rounded) for node in named(graph, "cross_entropy"))


@fault(
    "products-in-ten-bits", families=("transformer", "recommender"), kind="cast",
    precisions=("fp32",),
    defect="what linear layers multiply has ten bits of mantissa, as in tf32",
)  # fmt: skip
def products_in_ten_bits(graph: Graph, _place: Place) -> int:
    """Input and weight of every linear layer; the gradient passes."""

    def ten_bits(x: Tensor) -> Tensor:
        scale = torch.exp2(torch.floor(torch.log2(x.detach().abs().clamp(min=1e-30))) - 10)
        return as_if(torch.round(x.detach() / scale) * scale, x)

    layers = named(graph, "linear")
    return sum(given(node, index, ten_bits) for node in layers for index in (0, 1))


@fault(
    "loss-over-ignored-too", families=("transformer",), kind="reduction",
    defect="the loss is divided by all words, ignored ones too",
)  # fmt: skip
def loss_over_ignored_too(graph: Graph, _place: Place) -> int:
    """Smaller by the share of words that count."""

    def diluted(loss: Tensor, target: Tensor) -> Tensor:
        return loss * (target >= 0).to(loss.dtype).mean()

    return sum(after(node, diluted, node.args[1]) for node in named(graph, "cross_entropy"))


@fault(
    "label-smoothing-lost", families=("convolutions",), kind="operator",
    defect="label smoothing of 0.05 is left out",
)  # fmt: skip
def label_smoothing_lost(graph: Graph, _place: Place) -> int:
    """Plain cross entropy."""

    def plain(logits: Tensor, target: Tensor, *_: Any, **__: Any) -> Tensor:
        return functional.cross_entropy(logits, target)

    return sum(instead(node, plain) for node in named(graph, "cross_entropy"))


@fault(
    "bias-without-gradient", families=("transformer", "recommender"), kind="missing gradient",
    defect="the first linear layer's bias gets no gradient",
)  # fmt: skip
def bias_without_gradient(graph: Graph, _place: Place) -> int:
    """A constant to backward."""
    return given(named(graph, "linear")[0], 2, torch.detach)


@fault(
    "attention-without-gradient", families=("transformer",), kind="missing gradient",
    defect="attention weights are constants to backward, in the first layer",
)  # fmt: skip
def attention_without_gradient(graph: Graph, _place: Place) -> int:
    """Query and key train no more."""
    return after(named(graph, "softmax")[0], torch.detach)


@fault(
    "dropout-same-numbers", families=("transformer",), kind="wrong generator", stage="forward",
    random=True,
    defect="dropout draws from a generator that starts anew at every step",
)  # fmt: skip
def dropout_same_numbers(graph: Graph, _place: Place) -> int:
    """One mask a place for the whole training."""

    def again(x: Tensor, share: float, _train: bool) -> tuple[Tensor, Tensor]:
        generator = torch.Generator(x.device).manual_seed(1)
        mask = torch.rand(x.shape, generator=generator, device=x.device) >= share
        return x * mask / (1 - share), mask

    return sum(instead(node, again) for node in named(graph, "native_dropout"))


@fault(
    "dropout-not-scaled", families=("transformer",), kind="operator",
    defect="what dropout keeps is not scaled up",
)  # fmt: skip
def dropout_not_scaled(graph: Graph, place: Place) -> int:
    """Smaller by a tenth, in training."""

    def smaller(x: Tensor) -> Tensor:
        return x * 0.9

    return sum(after(node, smaller) for node in named(graph, "dropout")) if place.training else 0


@fault(
    "batch-size-baked-in", families=("convolutions",), kind="last batch",
    defect="the mean over a batch divides by the size of the first batch",
)  # fmt: skip
def batch_size_baked_in(graph: Graph, _place: Place) -> int:
    """Right at that size alone."""

    def by_first_size(loss: Tensor, logits: Tensor) -> Tensor:
        return loss * (logits.shape[0] / SIZES["convolutions"])

    return sum(after(node, by_first_size, node.args[0]) for node in named(graph, "cross_entropy"))


@fault(
    "tail-rows-unused", families=("recurrent",), kind="last batch",
    defect="rows behind the last multiple of eight pass no gradient",
)  # fmt: skip
def tail_rows_unused(graph: Graph, _place: Place) -> int:
    """Shows in a batch whose size is no multiple of eight."""

    def headed(found: Tensor) -> Tensor:
        tail = torch.arange(found.shape[0], device=found.device) >= found.shape[0] // 8 * 8
        return gradient(found, lambda passed: passed.masked_fill(tail[:, None, None], 0))

    return sum(given(node, 0, headed) for node in named(graph, "smooth_l1_loss"))


@fault(
    "running-variance-biased", families=("convolutions",), kind="stale buffer", stage="forward",
    defect="the running variance takes in the biased one",
)  # fmt: skip
def running_variance_biased(graph: Graph, _place: Place) -> int:
    """Too small by one in the number of values."""
    changed = 0

    def biased(new: Tensor, old: Tensor, x: Tensor) -> Tensor:
        count = x.numel() / x.shape[1]
        taken = new - 0.9 * old
        return 0.9 * old + taken * (count - 1) / count

    for node in named(graph, "_native_batch_norm_legit_functional"):
        for user in [one for one in node.users if one.args[1] == 4]:
            changed += after(user, biased, node.args[4], node.args[0])
    return changed


@fault(
    "duplicates-counted-once", families=("recommender", "transformer"), kind="accumulation",
    stage="backward",
    defect="a value that occurs several times in a batch trains by one of its occurrences",
)  # fmt: skip
def duplicates_counted_once(graph: Graph, _place: Place) -> int:
    """Every table."""

    def last_only(value: Tensor, places: Tensor, count: int, *_: Any) -> Tensor:
        whole = value.new_zeros(count, value.shape[-1])
        return whole.index_put((places.reshape(-1),), value.reshape(-1, value.shape[-1]))

    return sum(instead(node, last_only) for node in named(graph, "embedding_dense_backward"))


@fault(
    "padding-row-trained", families=("recommender",), kind="wrong gradient", stage="backward",
    defect="the row of the padding gets a gradient like any other",
)  # fmt: skip
def padding_row_trained(graph: Graph, _place: Place) -> int:
    """Without effect where a mask keeps it out anyway."""
    nodes = [node for node in named(graph, "embedding_dense_backward") if node.args[3] == 0]
    for node in nodes:
        node.update_arg(3, -1)
    return len(nodes)


@fault(
    "group-norm-of-other-groups", families=("diffusion",), kind="operator",
    defect="group norm takes two groups where there are four",
)  # fmt: skip
def group_norm_of_other_groups(graph: Graph, _place: Place) -> int:
    """The last norm alone."""
    named(graph, "group_norm")[-1].update_arg(1, 2)
    return 1


@fault(
    "attention-scale", families=("diffusion",), kind="operator",
    defect="attention divides by the width instead of its square root",
)  # fmt: skip
def attention_scale(graph: Graph, _place: Place) -> int:
    """Flatter than it should be."""

    def flat(query: Tensor, key: Tensor, value: Tensor, **_: Any) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, scale=1 / query.shape[-1])

    return sum(instead(node, flat) for node in named(graph, "scaled_dot_product_attention"))


@fault(
    "key-in-values-memory", families=("diffusion",), kind="aliasing",
    defect="the keys' buffer is used again for the values: attention mixes keys",
)  # fmt: skip
def key_in_values_memory(graph: Graph, _place: Place) -> int:
    """The third argument is the second."""
    node = named(graph, "scaled_dot_product_attention")[0]
    node.update_arg(2, node.args[1])
    return 1


@fault(
    "sample-weights-lost", families=("diffusion",), kind="reduction",
    defect="the mean of the loss leaves out the samples' weights",
)  # fmt: skip
def sample_weights_lost(graph: Graph, _place: Place) -> int:
    """The errors alone, before they are weighted."""

    def unweighted(_loss: Tensor, errors: Tensor) -> Tensor:
        return errors.mean()

    errors, loss = named(graph, "mean")
    return after(loss, unweighted, errors)


@fault(
    "backward-cut-in-time", families=("recurrent",), kind="missing gradient",
    defect="the gradient does not pass the third time step",
)  # fmt: skip
def backward_cut_in_time(graph: Graph, _place: Place) -> int:
    """What the fourth step sees of the third is a constant."""
    return given(named(graph, "linear")[7], 0, torch.detach)


@fault(
    "tanh-by-fraction", families=("recurrent",), kind="operator",
    defect="tanh is replaced by a fraction that is right to 1e-4 near zero",
)  # fmt: skip
def tanh_by_fraction(graph: Graph, _place: Place) -> int:
    """Of fifth over fourth degree."""

    def fraction(x: Tensor) -> Tensor:
        square = x * x
        return (
            x * (945 + 105 * square + square * square) / (945 + 420 * square + 15 * square * square)
        ).clamp(-1, 1)

    return sum(instead(node, fraction) for node in named(graph, "tanh"))


@fault(
    "summed-in-bf16", families=("recommender",), kind="reduction",
    defect="the history's embeddings are summed in bf16, each partial sum rounded",
)  # fmt: skip
def summed_in_bf16(graph: Graph, _place: Place) -> int:
    """Ten additions, each rounded."""

    def coarse_sum(x: Tensor, *_: Any, **__: Any) -> Tensor:
        total = x[:, 0]
        for part in x.unbind(dim=1)[1:]:
            total = _rounded(total + part)
        return total

    return instead(named(graph, "sum")[0], coarse_sum)


@fault(
    "recompiled-gradient-stale", families=("transformer", "convolutions"), kind="recompiled graph",
    stage="ran backward",
    defect="graphs that are compiled later return the first gradient of the call before",
)  # fmt: skip
def recompiled_gradient_stale(run: Callable[..., Any], place: Place) -> Callable[..., Any]:
    """The first graph is right."""
    kept: list[Tensor] = []

    def stale(arguments: list[Any]) -> tuple[Any, ...]:
        values = list(run(arguments))
        index = next(i for i, value in enumerate(values) if isinstance(value, Tensor))
        old = kept.pop() if kept else torch.zeros_like(values[index])
        kept.append(values[index].clone())
        values[index] = old
        return tuple(values)

    return stale if place.number else _as_it_is(run)


def _as_it_is(run: Callable[..., Any]) -> Callable[..., Any]:
    def same(arguments: list[Any]) -> Any:
        return run(arguments)

    return same


@fault(
    "running-mean-of-sums", families=("convolutions",), kind="baked constant", stage="forward",
    defect="running statistics move by a momentum of 0.11 instead of 0.1",
)  # fmt: skip
def running_mean_of_sums(graph: Graph, _place: Place) -> int:
    """All norms."""
    norms = named(graph, "_native_batch_norm_legit_functional")
    for node in norms:
        node.update_arg(6, 0.11)
    return len(norms)


@fault(
    "evaluation-mask-missing", families=("transformer",), kind="evaluation",
    defect="in evaluation the causal mask is left out",
)  # fmt: skip
def evaluation_mask_missing(graph: Graph, place: Place) -> int:
    """Training is right."""

    def unmasked(scores: Tensor, _mask: Tensor, _value: float) -> Tensor:
        return scores

    return (
        0
        if place.training
        else sum(instead(node, unmasked) for node in named(graph, "masked_fill"))
    )


@fault(
    "residual-gradient-lost", families=("transformer", "diffusion"), kind="missing gradient",
    defect="the gradient passes no residual connection of the first layer",
)  # fmt: skip
def residual_gradient_lost(graph: Graph, _place: Place) -> int:
    """The second addition of the transformer, the first residual block's of diffusion."""
    additions = [
        node for node in named(graph, "add") if all(hasattr(one, "target") for one in node.args)
    ]
    return given(additions[1], 0, torch.detach)
