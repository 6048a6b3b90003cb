"""Batches, modules and number formats of which the equivalence check has to know; see its cases."""

import collections
import dataclasses
import functools

import equivalence_cases as cases
import torch
from compilegate_runtime import equivalence
from equivalence_cases import batch, changed, examined, loss, of, subject
from torch.nn import functional


class Enclosed(collections.UserDict):
    """As what tokenizers give."""

    @classmethod
    def of(cls, rows, labels):
        return cls(rows=rows, labels=labels)


class Pair(list):
    def __init__(self, rows, labels):
        super().__init__([rows, labels])


@dataclasses.dataclass
class Graph:
    rows: torch.Tensor
    labels: torch.Tensor


class Locked(Graph):
    def __copy__(self):
        raise TypeError("cannot be copied")


def cached(model, graph):
    """Once a batch, in the batch."""
    if not hasattr(graph, "features"):
        graph.features = functional.silu(model.frozen(graph.rows))
    return loss(model, graph.features, graph.labels)


def overwritten(model, graph):
    graph.rows = torch.tanh(model.body(graph.rows))
    return loss(model, graph.rows, graph.labels)


def popped(model, batch):
    return loss(model, rows=batch["rows"], labels=batch.pop("labels"))


class OfAnObject(cases.Of):
    def forward(self, *parts):
        return self.function(self, *parts)


def enclosed(forward, make, backend="none"):
    torch.manual_seed(cases.SEED)
    batches = [[make(*batch())] for _ in range(equivalence.STEPS)]
    parts = {"frozen": torch.nn.Linear(16, 16).requires_grad_(False)}
    return subject(backend, model=OfAnObject(forward, **parts), batches=batches)


def of_sparse_rows(model, matrix, rows, labels):
    return loss(model, torch.sparse.mm(matrix, rows), labels)


def with_a_sparse_batch():
    torch.manual_seed(cases.SEED)
    batches = [[torch.eye(12).to_sparse(), *batch()] for _ in range(equivalence.STEPS)]
    return subject(model=OfAnObject(of_sparse_rows), batches=batches)


def nothing(node):
    with node.graph.inserting_after(node):
        made = node.graph.call_function(torch.mul, (node, 0.0))
    node.replace_all_uses_with(made, lambda user: user is not made)


def scripted(model):
    model.odd = torch.jit.script(torch.nn.Linear(2, 2))


def on_meta(model):
    model.register_buffer("odd", torch.zeros(3, device="meta"), persistent=False)


def stepping(model):
    model.head.weight.register_post_accumulate_grad_hook(lambda weight: None)


def with_queue(model):
    model.plain, model.mean = {}, torch.zeros(64, 8)


def queueing(model, rows, labels):
    scores = model.head(rows)
    model.mean[torch.arange(len(rows))] = scores.detach()
    return functional.cross_entropy(scores + model.mean.mean(0), labels)


def with_turns(model):
    model.turns = torch.polar(torch.ones(8, 8), torch.randn(8, 8))


def turning(model, rows, labels):
    turned = torch.view_as_complex(rows.reshape(-1, 8, 2)) @ model.turns
    return loss(model, torch.view_as_real(turned).reshape(-1, 16), labels)


class OfTheProcessor(torch.autocast):
    """As the autocast of each device is."""

    def __init__(self):
        super().__init__("cpu", torch.bfloat16)


decorated = OfTheProcessor()(loss)

CASES = {
    "a fault behind what a batch keeps": functools.partial(
        enclosed, cached, Graph, changed(functional.silu, nothing)
    )
}
# As in the cases.
INPUTS = {
    "a batch that is emptied": (
        functools.partial(enclosed, popped, Enclosed.of), None,
    ),
    "a batch that is overwritten": (functools.partial(enclosed, overwritten, Graph), None),
    "a batch of its own class": (
        functools.partial(enclosed, lambda model, pair: loss(model, *pair), Pair), None,
    ),
    "a batch that cannot be copied": (
        functools.partial(enclosed, overwritten, Locked), "batch_not_copied",
    ),
    "a sparse batch": (with_a_sparse_batch, None),
    "scripted": (functools.partial(of, change=scripted), "scripted"),
    "without values": (functools.partial(of, change=on_meta), "no_values"),
    "a step in the backward pass": (
        functools.partial(of, change=stepping), "optimizer_in_backward",
    ),
    "a queue": (functools.partial(of, queueing, change=with_queue), None),
    "complex numbers": (functools.partial(of, turning, change=with_turns), None),
    "decorated": (functools.partial(of, decorated), None),
}  # fmt: skip


def formats():
    """Those of float32 products, wherever PyTorch chooses one."""
    backends = torch.backends
    places = [backends, backends.cudnn, backends.mkldnn, backends.cuda.matmul]
    places += [getattr(of, kind) for of in places[1:3] for kind in ("conv", "rnn")]
    return [one.fp32_precision for one in [*places, backends.mkldnn.matmul]]


def in_a_format(place, value="tf32", *, gradients=True):
    """Examined where a script has chosen a format of products, or has ended without gradients."""
    before, place.fp32_precision = place.fp32_precision, value
    chosen = formats()
    made = subject()
    with torch.set_grad_enabled(gradients):
        figures = examined(lambda: made)
        figures["untouched"] &= chosen == formats() and torch.is_grad_enabled() == gradients
    place.fp32_precision = before
    return figures


def formatted():
    backends = torch.backends
    return {
        "matmul of CUDA": in_a_format(backends.cuda.matmul),
        "convolutions of cuDNN": in_a_format(backends.cudnn.conv, "ieee"),
        "matmul of the processor": in_a_format(backends.mkldnn.matmul),
        "convolutions of the processor": in_a_format(backends.mkldnn.conv),
        "all": in_a_format(backends),
        "no gradients": in_a_format(backends, "none", gradients=False),
    }
