"""Second half: faults from PyTorch's tracker, by a reader who had not seen the check.

Each was read there; numbers are PyTorch's. Where a report gives symptoms and no mechanism, the
mutation shows the symptom. What a report shows in a whole tensor is kept to a small part here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.nn import functional

from benchmarks.equivalence.faults import Place, after, fault, given, instead, name_of, named

LAST_QUERIES = 4


def _part(node: Node, index: int) -> Node:
    """One of the results of an operator that has several."""
    return next(user for user in node.users if name_of(user) == "getitem" and user.args[1] == index)


def _sums_over_rows(graph: Graph) -> list[Node]:
    """Gradients of biases in a backward graph."""
    return [node for node in named(graph, "sum") if list(node.args[1:2]) == [[0]]]


@fault(
    "moment-overwritten-after-use", families=("recommender", "recurrent"), kind="memory reused",
    stage="optimizer", issue=183575,
    title="the memory of a lerp in place is reused while its result is still needed",
    defect="a moment that a later kernel only reads was taken for written, so that its memory was "
    "given to an unrelated gradient and held that instead of the average",
    same="after its step, the first weight's first moment holds the gradient itself",
)  # fmt: skip
def moment_overwritten_after_use(graph: Graph, _place: Place) -> int:
    """The step is right; the next one starts from the wrong moment."""
    moment, grad = named(graph, "lerp_")[0].args[:2]
    with graph.inserting_before(graph.output_node()):
        graph.call_method("copy_", (moment, grad))
    return 1


@fault(
    "factor-dropped-in-batch", families=("recommender", "recurrent"), kind="baked constant",
    stage="optimizer", issue=195442,
    title="a pass that batches subtractions drops their factor alpha",
    defect="several subtractions with alpha=2 were batched into one without it",
    same="the last weight's squared gradient enters its second moment without its factor",
)  # fmt: skip
def factor_dropped_in_batch(graph: Graph, _place: Place) -> int:
    """A factor of one, as the default of alpha is."""
    joined = named(graph, "fma")
    if joined:
        joined[-1].update_arg(1, 1.0)
    else:
        named(graph, "addcmul_")[-1].update_kwarg("value", 1.0)
    return 1


@fault(
    "shifted-over-itself", families=("recurrent",), kind="aliasing", issue=197829,
    title="shifting rows in place becomes a copy over overlapping memory",
    defect="each row should take the one before, and on a processor the first ended in every row",
    same="in the last of the features that are read out, every time holds what the first one does",
)  # fmt: skip
def shifted_over_itself(graph: Graph, _place: Place) -> int:
    """One feature of all states that the last layer sees."""

    def first_in_all(states: Tensor) -> Tensor:
        first = states[:, :1, -1:].expand(-1, states.shape[1], -1)
        return torch.cat([states[..., :-1], first], dim=2)

    return given(named(graph, "linear")[-1], 0, first_in_all)


@fault(
    "sum-read-in-another-type", families=("recommender",), kind="cast", stage="backward",
    precisions=("bf16",), issue=194329,
    title="under autocast with dynamic shapes, operators that are not compiled return garbage",
    defect="a sum in the backward pass ran in another type than its memory was declared with, "
    "which happened with dynamic shapes alone",
    same="in graphs compiled later, the last bias's gradient is written as bf16 and read as fp32",
)  # fmt: skip
def sum_read_in_another_type(graph: Graph, place: Place) -> int:
    """Two values are read as one, and nothing is left for the second half."""

    def misread(total: Tensor) -> Tensor:
        read = total.to(torch.bfloat16).contiguous().view(torch.float32)
        return torch.cat([read, torch.zeros_like(read)], dim=-1).to(total.dtype)

    return after(_sums_over_rows(graph)[-1], misread) if place.number else 0


@fault(
    "last-row-without-gradient", families=("recommender", "transformer"), kind="missing gradient",
    stage="backward", issue=151918,
    title="embedding reads a negative index from the end of the table",
    defect="the gradient of index -1, the mark for no padding row, was set to zero",
    same="the gradient of every table's last row is zero",
)  # fmt: skip
def last_row_without_gradient(graph: Graph, _place: Place) -> int:
    """Rows that are rarely looked up, in the recommender."""

    def without_last(table: Tensor) -> Tensor:
        return torch.cat([table[:-1], torch.zeros_like(table[-1:])])

    return sum(after(node, without_last) for node in named(graph, "embedding_dense_backward"))


@fault(
    "key-gradient-unwritten", families=("diffusion",), kind="recompiled graph", stage="backward",
    issue=146377,
    title="compiled flexible attention leaves garbage in the gradient of keys at some strides",
    defect="with dynamic shapes the keys' gradient held what was in memory, the others were right",
    same="in graphs compiled later, the last token's key gets its gradient of the call before",
)  # fmt: skip
def key_gradient_unwritten(graph: Graph, place: Place) -> int:
    """Zeros at first, later the mean over the batch of the call before."""
    kept: list[Tensor] = []

    def unwritten(keys: Tensor) -> Tensor:
        old = kept.pop() if kept else torch.zeros_like(keys[0, :, -1])
        kept.append(keys[:, :, -1].mean(0))
        new = keys.clone()
        new[:, :, -1] = old
        return new

    nodes = named(graph, "_scaled_dot_product_flash_attention_for_cpu_backward")
    return sum(after(_part(node, 1), unwritten) for node in nodes) if place.number else 0


@fault(
    "masked-blocks-without-gradient", families=("transformer",), kind="missing gradient",
    issue=158212,
    title="wrong gradients of keys and values in compiled flexible attention with a mask of blocks",
    defect="the gradients of the projections of keys and values were wrong, in fp32 as in bf16",
    same="keys and values of the last layer get no gradient from the last four queries",
)  # fmt: skip
def masked_blocks_without_gradient(graph: Graph, _place: Place) -> int:
    """Both products of the last attention; queries keep their gradients."""

    def in_blocks(rows: Tensor, columns: Tensor) -> Tensor:
        first, last = rows[..., :-LAST_QUERIES, :], rows[..., -LAST_QUERIES:, :]
        return torch.cat([first @ columns, last @ columns.detach()], dim=-2)

    return sum(instead(node, in_blocks) for node in named(graph, "matmul")[-2:])


@fault(
    "index-of-maximum-zero", families=("convolutions",), kind="misplaced gradient",
    stage="forward", issue=178964,
    title="max returns index zero where its input is a sum with a transposed tensor",
    defect="the values were right and every index was zero",
    same="in the last channel, max pooling finds its maximum in each window's first place",
)  # fmt: skip
def index_of_maximum_zero(graph: Graph, _place: Place) -> int:
    """The backward pass sends that channel's gradient there."""

    def first_places(places: Tensor) -> Tensor:
        rows, columns = places.shape[-2:]
        down = torch.arange(rows, device=places.device)[:, None] * 4 * columns
        new = places.clone()
        new[:, -1] = down + 2 * torch.arange(columns, device=places.device)
        return new

    nodes = named(graph, "max_pool2d_with_indices")
    return sum(after(_part(node, 1), first_places) for node in nodes)


@fault(
    "border-without-zeros", families=("diffusion",), kind="operator", issue=189895,
    title="constant padding that is fused into a split reduction loses its border",
    defect="the leading element of the padding got the neighbour's result, not the fill value",
    same="the left border of the first convolution's input holds its first column, not zeros",
)  # fmt: skip
def border_without_zeros(graph: Graph, _place: Place) -> int:
    """One of four borders of one convolution."""

    def unbounded(
        x: Tensor, weight: Tensor, bias: Tensor, stride: Any, _padding: Any, *more: Any
    ) -> Tensor:
        padded = functional.pad(x, (1, 1, 1, 1))
        padded = torch.cat([padded[..., 1:2], padded[..., 1:]], dim=-1)
        return functional.conv2d(padded, weight, bias, stride, 0, *more)

    return instead(named(graph, "conv2d")[0], unbounded)


@fault(
    "interpolated-at-corners", families=("diffusion",), kind="operator", issue=93262,
    title="bilinear interpolation is wrong in compiled code, other modes are right",
    defect="values were taken at other places than eager's; shown for an output of one pixel",
    same="the last two columns of the enlarged picture are taken at its pixel's corner",
)  # fmt: skip
def interpolated_at_corners(graph: Graph, _place: Place) -> int:
    """Half a pixel aside, at the right border alone."""

    def at_corners(wide: Tensor) -> Tensor:
        return torch.cat([wide[..., :-2], wide[..., -1:], wide[..., -1:]], dim=-1)

    return sum(after(node, at_corners) for node in named(graph, "interpolate"))


@fault(
    "later-write-seen-before", families=("recurrent",), kind="aliasing", issue=198094,
    title="a scatter's result is put into an input's memory, which a later write overwrites",
    defect="what was computed before the write was returned as zeros",
    same="the penalty on states reads zeros where the last one was",
)  # fmt: skip
def later_write_seen_before(graph: Graph, _place: Place) -> int:
    """A term that training alone has and that fades."""

    def overwritten(states: Tensor) -> Tensor:
        return torch.cat([states[:, :-1], torch.zeros_like(states[:, -1:])], dim=1)

    return sum(given(node, 0, overwritten) for node in named(graph, "pow"))


@fault(
    "joined-buffer-half-filled", families=("diffusion",), kind="memory reused", issue=100314,
    title="a wrong program where inputs of a concatenation are used again",
    defect="a part of the joined memory was never filled",
    same="the last row of the last channel of the joined pictures is empty",
)  # fmt: skip
def joined_buffer_half_filled(graph: Graph, _place: Place) -> int:
    """Eight of two thousand values."""

    def half_filled(joined: Tensor) -> Tensor:
        last = torch.cat([joined[:, -1:, :-1], torch.zeros_like(joined[:, -1:, -1:])], dim=2)
        return torch.cat([joined[:, :-1], last], dim=1)

    return after(named(graph, "cat")[-1], half_filled)


@fault(
    "scalar-stored-by-every-block", families=("recurrent",), kind="recompiled graph",
    issue=168937,
    title="kernels that are combined store a scalar without a mask",
    defect="with dynamic shapes, a scalar result was overwritten by blocks that it was not of",
    same="in graphs compiled later, the penalty is that of the batch's last sample",
)  # fmt: skip
def scalar_stored_by_every_block(graph: Graph, place: Place) -> int:
    """Right in the first graph."""

    def of_last(squares: Tensor) -> Tensor:
        return squares[-1:].mean()

    if not place.training or not place.number:
        return 0
    return sum(instead(node, of_last) for node in named(graph, "mean"))


@fault(
    "replaced-layer-not-seen", families=("recommender",), kind="stale weight",
    stage="ran forward", issue=197859,
    title="a layer that is replaced in the module's own attributes goes unnoticed",
    defect="compiled code went on with the old layer, without a warning",
    same="graphs compiled later go on with the weights that the last layer had in their first call",
)  # fmt: skip
def replaced_layer_not_seen(
    run: Callable[[list[Any]], Any], place: Place
) -> Callable[[list[Any]], Any]:
    """The first graph is right, and so is the first call of another one."""
    shape = torch.Size([1, 32])

    def with_old(arguments: list[Any]) -> Any:
        for index, value in enumerate(arguments if place.number else ()):
            if isinstance(value, Tensor) and value.shape == shape:
                arguments[index] = place.memory.setdefault("last layer", value.detach().clone())
        return run(arguments)

    return with_old
