"""First half: faults from PyTorch's tracker, label "module: correctness (silent)" or the like.

Each was read there; numbers are PyTorch's. Where a report gives symptoms and no mechanism, the
mutation shows the symptom.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
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

KEPT = 0.9  # the transformer's dropout drops one in ten


def _joined(graph: Graph, parts: int) -> list[Node]:
    """Concatenations of this many tensors: in a backward graph, where a tensor had been split."""
    return [node for node in named(graph, "cat") if len(node.args[0]) == parts]


@fault(
    "modulation-gradient-stale", families=("diffusion",), kind="missing gradient", stage="backward",
    issue=193061,
    title="wrong gradients of chained modulated layer norms that share a table of scale and shift",
    defect="the second norm's slices of the table's gradient were never written, so that the "
    "gradient held what the memory held before",
    same="the slices of the second norm keep the values of the step before, zeros at first",
)  # fmt: skip
def modulation_gradient_stale(graph: Graph, _place: Place) -> int:
    """The fourth and fifth part of the joined gradient are those of the call before."""
    kept: list[Tensor] = []

    def stale(whole: Tensor) -> Tensor:
        new, old = whole.clone(), kept.pop() if kept else torch.zeros_like(whole)
        kept.append(whole.clone())
        rows = min(len(old), len(new))
        new[:rows, 3:5] = old[:rows, 3:5]
        return new

    return sum(after(node, stale) for node in _joined(graph, 6))


@fault(
    "pooled-gradient-misplaced", families=("convolutions",), kind="misplaced gradient",
    stage="backward", issue=185509,
    title="wrong gradients where interpolation, convolution, max pooling and where meet",
    defect="the forward pass was right, and the gradients of input, weight and bias were not",
    same="the gradient behind max pooling lands one column aside; forward is left alone",
)  # fmt: skip
def pooled_gradient_misplaced(graph: Graph, _place: Place) -> int:
    """Shift what max pooling passes back."""

    def aside(value: Tensor) -> Tensor:
        return value.roll(1, dims=-1)

    return sum(after(node, aside) for node in named(graph, "max_pool2d_with_indices_backward"))


@fault(
    "diagonal-scatter-gradient-zero", families=("recommender",), kind="missing gradient",
    stage="backward", issue=182012,
    title="the gradient of what diagonal_scatter writes into is all zeros",
    defect="only the diagonal's gradient was right; all elsewhere was zero where it should pass",
    same="the same gradient of the same operator is replaced by zeros",
)  # fmt: skip
def diagonal_scatter_gradient_zero(graph: Graph, _place: Place) -> int:
    """The gradient of the tensor under the diagonal is lost."""
    return sum(after(node, torch.zeros_like) for node in named(graph, "diagonal_scatter"))


@fault(
    "written-slices-gradient-zero", families=("recurrent",), kind="missing gradient",
    issue=180164,
    title="slice_scatter followed by a sum: the gradient of the tensor under the slice is zeroed",
    defect="the check whether a place is in the slice was folded into a constant",
    same="the tensor that states are written into gets no gradient where none is written",
)  # fmt: skip
def written_slices_gradient_zero(graph: Graph, _place: Place) -> int:
    """The row of the first state passes nothing back."""

    def cut(value: Tensor) -> Tensor:
        return gradient(value, torch.zeros_like)

    return sum(given(node, 0, cut) for node in named(graph, "repeat"))


class _Leak(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, whole: Tensor, _under: Tensor) -> Tensor:
        return whole.view_as(whole)

    @staticmethod
    def backward(_ctx: Any, given_back: Tensor) -> tuple[Tensor, Tensor]:
        return given_back, given_back[:, 1:].sum(dim=1)


@fault(
    "overwritten-slices-gradient", families=("recurrent",), kind="wrong gradient", issue=183898,
    title="slice_scatter: what is overwritten gets a gradient of one where it should be zero",
    defect="the gradient passed through to overwritten places of the tensor under the slice",
    same="the state under the written ones also gets their gradients",
)  # fmt: skip
def overwritten_slices_gradient(graph: Graph, _place: Place) -> int:
    """The first state gets the gradient of all that was written over it."""
    return given(named(graph, "linear")[-1], 0, _Leak.apply, named(graph, "expand")[0])


@fault(
    "one-of-two-sums-lost", families=("transformer",), kind="accumulation", stage="backward",
    issue=136662,
    title="two in-place additions into one tensor: one of two contributions is lost",
    defect="the pass that makes additions in place again dropped one of them, so that the gradient "
    "was half",
    same="of the two gradients of the shared embedding, that of the lookup is lost",
)  # fmt: skip
def one_of_two_sums_lost(graph: Graph, _place: Place) -> int:
    """The tied weight keeps the head's gradient alone."""
    lookup = named(graph, "embedding_dense_backward")[0]
    changed = 0
    for node in [user for user in lookup.users if user in named(graph, "add")]:
        other = next(one for one in node.args if one is not lookup)
        changed += after(node, _second, other)
    return changed


def _second(_first: Tensor, second: Tensor) -> Tensor:
    return second


def _as_before(_new: Tensor, old: Tensor) -> Tensor:
    return old.clone()


@fault(
    "evaluation-norm-folded-wrongly", families=("convolutions",), kind="evaluation",
    stage="evaluation", issue=181696,
    title="batch norm and group norm give wrong output in evaluation mode",
    defect="frozen statistics were folded into scale and shift wrongly, for example those of "
    "another norm",
    same="the third norm is evaluated with the statistics of the second",
)  # fmt: skip
def evaluation_norm_folded_wrongly(graph: Graph, _place: Place) -> int:
    """Statistics of a norm of the same width."""
    norms = named(graph, "_native_batch_norm_legit_no_training")
    for index in (3, 4):
        norms[2].update_arg(index, norms[1].args[index])
    return 1


@fault(
    "dropout-drawn-anew-in-backward", families=("transformer",), kind="random numbers",
    stage="backward", issue=190758, random=True,
    title="a memory budget lets dropout be recomputed in backward with new random numbers",
    defect="backward used another mask than forward",
    same="backward draws its masks anew",
)  # fmt: skip
def dropout_drawn_anew_in_backward(graph: Graph, _place: Place) -> int:
    """Every mask of the backward pass is a new one."""

    def fresh(mask: Tensor) -> Tensor:
        return torch.rand(mask.shape, device=mask.device) < KEPT

    return sum(given(node, 1, fresh) for node in named(graph, "native_dropout_backward"))


@fault(
    "dropout-in-groups-of-four", families=("transformer",), kind="random numbers", stage="forward",
    issue=198333, random=True,
    title="the kernel that draws four numbers at once gives neighbours one mask",
    defect="groups of four adjacent channels had the same mask, a quarter of it was independent",
    same="one number is drawn for every four neighbours",
)  # fmt: skip
def dropout_in_groups_of_four(graph: Graph, _place: Place) -> int:
    """Masks repeat four times along the last dimension."""

    def grouped(x: Tensor, share: float, _train: bool) -> tuple[Tensor, Tensor]:
        few = torch.rand(*x.shape[:-1], x.shape[-1] // 4, device=x.device) >= share
        mask = few.repeat_interleave(4, dim=-1)
        return x * mask / (1 - share), mask

    return sum(instead(node, grouped) for node in named(graph, "native_dropout"))


@fault(
    "dropout-drawn-in-another-order", families=("transformer",), kind="random numbers",
    stage="forward", issue=192635, random=True,
    title="reordering for peak memory changes the order in which dropout draws",
    defect="each call drew the numbers of another one, so that masks differed from eager's",
    same="every call passes over as many numbers as it needs before it draws",
)  # fmt: skip
def dropout_drawn_in_another_order(graph: Graph, _place: Place) -> int:
    """Other numbers of the same distribution."""

    def later(x: Tensor, share: float, train: bool) -> tuple[Tensor, Tensor]:
        torch.rand(x.shape, device=x.device)
        return torch.native_dropout(x, share, train)

    return sum(instead(node, later) for node in named(graph, "native_dropout"))


@fault(
    "index-gradient-times-batch", families=("recommender",), kind="accumulation", stage="backward",
    issue=188084,
    title="index_put on an expanded view is made in place and corrupts gradients",
    defect="rows that share memory summed into each other: too large by the batch size",
    same="the gradient of the indexed tensor is multiplied by the batch size",
)  # fmt: skip
def index_gradient_times_batch(graph: Graph, _place: Place) -> int:
    """As if all rows had been one."""

    def summed(value: Tensor) -> Tensor:
        return value * value.shape[0]

    return sum(after(node, summed) for node in named(graph, "index_put"))


@fault(
    "group-norm-weight-gradient", families=("diffusion",), kind="reduction", stage="backward",
    issue=140913,
    title="gradient of group norm's weight is wrong in channels-last memory format",
    defect="large errors in the channels of one group, depending on the input",
    same="the channels of the first group get the sum over half of the batch",
)  # fmt: skip
def group_norm_weight_gradient(graph: Graph, _place: Place) -> int:
    """Half of what the first group should have, in every norm."""

    def partly(value: Tensor) -> Tensor:
        size = len(value) // 4
        return torch.cat([value[:size] / 2, value[size:]])

    norms = named(graph, "native_group_norm_backward")
    weights = [user for node in norms for user in node.users if user.args[1] == 1]
    return sum(after(node, partly) for node in weights)


@fault(
    "mixed-buffer-before-norm", families=("transformer",), kind="aliasing", precisions=("bf16",),
    issue=191433,
    title="fusing embeddings, a bf16 linear and a norm mixes two states of a buffer",
    defect="an intermediate was kept in a buffer that was read again while bf16 results were "
    "being mixed in",
    same="the norm reads half of its features before the linear's output is added",
)  # fmt: skip
def mixed_buffer_before_norm(graph: Graph, _place: Place) -> int:
    """Only where bf16 and fp32 meet."""

    def half_old(new: Tensor, old: Tensor) -> Tensor:
        if not torch.is_autocast_enabled(new.device.type):
            return new
        middle = new.shape[-1] // 2
        return torch.cat([new[..., :middle], old[..., middle:].to(new.dtype)], dim=-1)

    norm = named(graph, "layer_norm")[1]
    added: Any = norm.args[0]
    return given(norm, 0, half_old, added.args[0])


@fault(
    "in-place-scaling-not-differentiated", families=("transformer",), kind="wrong gradient",
    issue=184113,
    title="an in-place custom function changes the gradient catastrophically",
    defect="the gradient passed as if the tensor had not been transformed in place",
    same="the first layer's attention scores pass their gradient on without the scale",
)  # fmt: skip
def in_place_scaling_not_differentiated(graph: Graph, _place: Place) -> int:
    """Undo the scale in backward."""
    node = named(graph, "mul")[0]
    scale: Any = node.args[1]

    def unscaled(value: Tensor) -> Tensor:
        return gradient(value, lambda passed: passed / scale)

    return given(node, 0, unscaled)


@fault(
    "gradients-in-each-others-slot", families=("diffusion",), kind="misplaced gradient",
    stage="backward", issue=180642,
    title="an in-place operation in a custom function sends the gradient to the wrong output",
    defect="the number of the output was overwritten, so that its gradient went to another slot",
    same="gradients of shift and scale change places",
)  # fmt: skip
def gradients_in_each_others_slot(graph: Graph, _place: Place) -> int:
    """Swap the first two of six."""
    joined = _joined(graph, 6)
    for node in joined:
        first, second, *others = node.args[0]
        node.update_arg(0, [second, first, *others])
    return len(joined)


@fault(
    "same-tensor-twice", families=("recommender",), kind="accumulation", issue=183604,
    title="a tensor that is passed twice to a custom function gets half of its gradient",
    defect="gradients of both positions should add; one was kept",
    same="the product of the embeddings with themselves is differentiated by its first factor only",
)  # fmt: skip
def same_tensor_twice(graph: Graph, _place: Place) -> int:
    """The second factor is a constant to backward."""
    return sum(given(node, 1, torch.detach) for node in named(graph, "bmm"))


@fault(
    "reflected-border-gradient", families=("diffusion",), kind="wrong gradient", stage="backward",
    issue=100793,
    title="wrong gradient of padding in mode reflect",
    defect="what is reflected should add its gradient to where it came from",
    same="the padded border's gradient is cut off",
)  # fmt: skip
def reflected_border_gradient(graph: Graph, _place: Place) -> int:
    """Keep the inner part alone."""

    def cropped(value: Tensor, _whole: Tensor, padding: list[int]) -> Tensor:
        left, _, top, _ = padding
        return value[..., top:-top, left:-left].contiguous()

    return sum(instead(node, cropped) for node in named(graph, "reflection_pad2d_backward"))


@fault(
    "interpolation-gradient", families=("diffusion",), kind="wrong gradient", issue=100794,
    title="wrong gradient of a convolution followed by interpolation",
    defect="forward was right, and the gradient the same wrong one for three modes",
    same="bilinear interpolation has the gradient of taking the nearest",
)  # fmt: skip
def interpolation_gradient(graph: Graph, _place: Place) -> int:
    """The mode's weights are not used in backward."""

    def nearest_backward(x: Tensor, *others: Any, **settings: Any) -> Tensor:
        value = functional.interpolate(x, *others, **settings)
        return as_if(value, functional.interpolate(x, scale_factor=2.0, mode="nearest"))

    return sum(instead(node, nearest_backward) for node in named(graph, "interpolate"))


@fault(
    "pooled-rows-by-another-stride", families=("convolutions",), kind="aliasing", issue=179931,
    title="adaptive average pooling and flatten: all rows but the first are wrong",
    defect="writer and reader of a buffer disagreed on its padded stride",
    same="every row of the pooled features is read one value further on than the row before",
)  # fmt: skip
def pooled_rows_by_another_stride(graph: Graph, _place: Place) -> int:
    """A reader's stride of one more."""

    def skewed(rows: Tensor) -> Tensor:
        count, width = rows.shape
        starts = torch.arange(count, device=rows.device)[:, None] * (width + 1)
        places = (starts + torch.arange(width, device=rows.device)) % (count * width)
        return rows.reshape(-1)[places]

    return after(named(graph, "flatten")[0], skewed)


@fault(
    "tail-written-over-next-row", families=("recommender",), kind="reduction", issue=196681,
    title="a tiled reduction stores a full vector in the tail and overwrites the next row",
    defect="values of the next row are overwritten where the width is no multiple of the vector's",
    same="the first two sums of every eighth row are the last two of the row before",
)  # fmt: skip
def tail_written_over_next_row(graph: Graph, _place: Place) -> int:
    """Every eighth row of the summed history."""

    def overwritten(total: Tensor) -> Tensor:
        before = total.roll(1, dims=0)
        spoilt = torch.cat([before[:, -2:], total[:, 2:]], dim=1)
        eighth = torch.arange(total.shape[0], device=total.device) % 8 == 7
        return torch.where(eighth[:, None], spoilt, total)

    return after(named(graph, "sum")[0], overwritten)


@fault(
    "static-gradient-buffers", families=("convolutions", "recurrent"), kind="accumulation",
    stage="ran backward", issue=181723,
    title="graphed callables return static gradient buffers and corrupt accumulation",
    defect="a parameter's accumulated gradient was the buffer that the next backward wrote into",
    same="backward returns its gradients in the same memory each time",
)  # fmt: skip
def static_gradient_buffers(run: Callable[..., Any], _place: Place) -> Callable[..., Any]:
    """Each output has one memory for good."""
    buffers: dict[tuple[int, torch.Size], Tensor] = {}

    def kept(index: int, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        buffer = buffers.setdefault((index, value.shape), torch.empty_like(value))
        return buffer.copy_(value).detach()

    def into_buffers(arguments: list[Any]) -> tuple[Any, ...]:
        return tuple(kept(*one) for one in enumerate(run(arguments)))

    return into_buffers


@fault(
    "accumulated-gradient-overwritten", families=("transformer", "recommender"),
    kind="accumulation", stage="ran backward", issue=96693,
    title="with CUDA graph trees accumulated gradients are those of one micro-batch",
    defect="the memory of the first micro-batch's gradient was taken as the accumulator, and "
    "replays wrote into it: a quarter after four micro-batches",
    same="each backward clears the gradients that the one before returned",
)  # fmt: skip
def accumulated_gradient_overwritten(run: Callable[..., Any], _place: Place) -> Callable[..., Any]:
    """A replay uses the memory of the gradients before."""
    returned: list[Tensor] = []

    def replayed(arguments: list[Any]) -> tuple[Any, ...]:
        values = run(arguments)
        for old in returned:
            old.zero_()
        returned[:] = [value.detach() for value in values if isinstance(value, Tensor)]
        return tuple(value.detach() if isinstance(value, Tensor) else value for value in values)

    return replayed


@fault(
    "saved-state-overwritten", families=("recurrent",), kind="stale buffer", stage="backward",
    issue=106321,
    title="wrong gradients of a recurrence in mode reduce-overhead",
    defect="a state that backward needs is overwritten by a later one",
    same="backward of one time step sees the state of the next",
)  # fmt: skip
def saved_state_overwritten(graph: Graph, _place: Place) -> int:
    """The fourth from the end takes its neighbour's."""
    nodes = named(graph, "tanh_backward")
    nodes[3].update_arg(1, nodes[2].args[1])
    return 1


@fault(
    "thawed-layer-without-gradient", families=("transformer",), kind="missing gradient",
    issue=139476,
    title="a graph compiled with frozen weights is used again after they are thawed",
    defect="whether weights require gradients was not guarded, so that they never trained",
    same="the second layer's feed-forward weights are constants to backward",
)  # fmt: skip
def thawed_layer_without_gradient(graph: Graph, _place: Place) -> int:
    """Weight and bias of two linears."""
    layers = named(graph, "linear")[-3:-1]
    return sum(given(node, index, torch.detach) for node in layers for index in (1, 2))


@fault(
    "evaluated-as-in-training", families=("transformer", "convolutions"), kind="evaluation",
    issue=105653,
    title="changing a module's training flag does not compile it again",
    defect="evaluation ran the graph of training, with dropout and statistics of the batch",
    same="in evaluation, dropout and batch norm work as in training",
)  # fmt: skip
def evaluated_as_in_training(graph: Graph, place: Place) -> int:
    """The flag of each is set."""
    if place.training:
        return 0
    for node in named(graph, "dropout"):
        node.update_arg(2, True)
    norms = named(graph, "batch_norm")
    for node in norms:
        node.update_arg(5, True)
    return len(norms) + len(named(graph, "dropout"))


@fault(
    "scalar-baked-in", families=("recurrent",), kind="baked constant", stage="forward",
    issue=117496,
    title="the value of an argument that is no tensor stays that of the first call",
    defect="a number was compiled in as a constant without a guard",
    same="the fading penalty keeps the factor of the first step",
)  # fmt: skip
def scalar_baked_in(graph: Graph, _place: Place) -> int:
    """The first value is kept for good."""
    kept: list[Tensor] = []

    def first(value: Tensor) -> Tensor:
        if not kept:
            kept.append(value.clone())
        return kept[0].to(value.dtype)

    return after(named(graph, "exp")[0], first)


@fault(
    "buffer-as-when-traced", families=("convolutions",), kind="stale buffer", stage="forward",
    issue=115774,
    title="wrong output when buffers are changed: the one of tracing time is referred to",
    defect="changes went to a buffer that the module no longer had",
    same="the second norm's running statistics are not updated",
)  # fmt: skip
def buffer_as_when_traced(graph: Graph, _place: Place) -> int:
    """New statistics are replaced by the old ones."""
    node = named(graph, "_native_batch_norm_legit_functional")[1]
    changed = 0
    for user in list(node.users):
        if user.args[1] in {3, 4}:
            changed += after(user, _as_before, node.args[user.args[1]])
    return changed


@fault(
    "counter-not-updated", families=("recurrent",), kind="stale buffer", stage="forward",
    issue=120248,
    title="a module's counter is not updated under the compiler",
    defect="the state stayed as it was at compile time",
    same="the number of steps made so far is not increased",
)  # fmt: skip
def counter_not_updated(graph: Graph, _place: Place) -> int:
    """The sum is replaced by what was there before."""
    counted = [node for node in named(graph, "add") if node.args[1] == 1]
    return sum(after(node, _as_before, node.args[0]) for node in counted)


@fault(
    "counter-updated-before-use", families=("recurrent",), kind="aliasing", stage="forward",
    issue=154820,
    title="in-place operations of a custom function are reordered",
    defect="a tensor was read after an update that should come later",
    same="the fading penalty is computed from the counter of the next step",
)  # fmt: skip
def counter_updated_before_use(graph: Graph, _place: Place) -> int:
    """One too much, before it is negated."""

    def increased(value: Tensor) -> Tensor:
        return value + 1

    return given(named(graph, "neg")[0], 0, increased)


@fault(
    "block-of-mask-skipped", families=("transformer",), kind="mask", issue=141126,
    title="wrong results of block-sparse attention for a simple mask",
    defect="blocks that the mask allows were not attended to",
    same="one block of eight by eight allowed places is masked out in every layer",
)  # fmt: skip
def block_of_mask_skipped(graph: Graph, _place: Place) -> int:
    """The last eight queries do not see the first eight keys."""

    def without_block(scores: Tensor) -> Tensor:
        length = scores.shape[-1]
        places = torch.arange(length, device=scores.device)
        block = (places[:, None] >= length - 8) & (places < 8)
        return scores.masked_fill(block, float("-inf"))

    return sum(given(node, 0, without_block) for node in named(graph, "softmax"))


@fault(
    "stacked-slice-misread", families=("recommender",), kind="aliasing", issue=185702,
    title="wrong values on a processor where slices are stacked",
    defect="a lane of a vectorised load came from a neighbouring place",
    same="the last feature of the last stacked part is its neighbour's",
)  # fmt: skip
def stacked_slice_misread(graph: Graph, _place: Place) -> int:
    """One lane of one part."""

    def misread(stacked: Tensor) -> Tensor:
        last = torch.cat([stacked[:, -1:, :-1], stacked[:, -1:, -2:-1]], dim=2)
        return torch.cat([stacked[:, :-1], last], dim=1)

    return after(named(graph, "stack")[0], misread)
