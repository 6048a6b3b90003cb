"""First half: faults that PyTorch 2.11 has on a processor and later versions have not.

They are tried with that version alone: nothing is changed, and a family is written with the
operator that it compiles wrongly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.equivalence.families import Batch, Family, Recommender
from benchmarks.equivalence.faults import Fault, enlist


class Prompted(Recommender):
    """With two learnt visits written over the first ones."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts = nn.Parameter(torch.randn(2, self.history.embedding_dim))

    def pooled(self, history: Tensor) -> Tensor:
        """The sum, the learnt ones among it."""
        prompts = self.prompts.expand(history.shape[0], -1, -1)
        return torch.slice_scatter(history, prompts, dim=1, start=0, end=2).sum(dim=1)


class Summed(Recommender):
    """With a penalty on products of a table's columns, those with themselves left out."""

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """As without, and the penalty."""
        loss, logits = super().forward(batch)
        table = self.tables[0].weight
        products = table.t() @ table
        others = products.diagonal_scatter(products.new_zeros(len(products)))
        return loss + 0.001 * others.sum(), logits


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor) -> Tensor:
        ctx.save_for_backward(one, other)
        return one * other + one + other

    @staticmethod
    def backward(ctx: Any, passed: Tensor) -> tuple[Tensor, Tensor]:
        one, other = ctx.saved_tensors
        return passed * (other + 1), passed * (one + 1)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:
        made = value * 2
        made += 1
        return made

    @staticmethod
    def backward(_ctx: Any, passed: Tensor) -> Tensor:
        return passed * 2


class Squared(Recommender):
    """With a function of its own that gets one tensor twice."""

    def chosen(self, products: Tensor) -> Tensor:
        """Pairs, bent."""
        pairs = super().chosen(products)
        return _Product.apply(pairs, pairs)


class Doubling(Recommender):
    """With a function of its own that adds in place."""

    def chosen(self, products: Tensor) -> Tensor:
        """Pairs, moved."""
        return _Doubled.apply(super().chosen(products)).tanh()


OCCURRING = (
    ("slices-under-a-sum", 180164, Prompted, "missing gradient",
     "slice_scatter followed by a sum: the gradient of the tensor under the slice is zeroed",
     "the check whether a place is in the slice was folded into a constant"),
    ("diagonal-under-a-sum", 182012, Summed, "missing gradient",
     "the gradient of what diagonal_scatter writes into is all zeros",
     "only the diagonal's gradient was right; all elsewhere was zero where it should pass"),
    ("function-of-one-tensor-twice", 183604, Squared, "accumulation",
     "a tensor that is passed twice to a custom function gets half of its gradient",
     "gradients of both positions should add; one was kept"),
    ("function-that-adds-in-place", 180642, Doubling, "missing gradient",
     "an in-place operation in a custom function sends the gradient to the wrong output",
     "the number of the output was overwritten, so that its gradient went to another slot"),
)  # fmt: skip


def _with(model: type[nn.Module], family: Family) -> Family:
    return replace(family, model=model)


for _name, _issue, _model, _kind, _title, _defect in OCCURRING:
    enlist(Fault(
        name=_name, families=("recommender",), kind=_kind, defect=_defect, issue=_issue,
        title=_title, same="it is the defect itself, in the compiler of PyTorch 2.11",
        half="first", version="2.11", model=lambda family, model=_model: _with(model, family),
    ))  # fmt: skip
