"""First half: faults that the installed compiler has, PyTorch 2.13 on a processor.

Nothing is changed: a family is written with the operator that is compiled wrongly.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.equivalence.families import (
    Batch,
    Convolutions,
    Diffusion,
    Family,
    Modulated,
    Recommender,
    Recurrent,
)
from benchmarks.equivalence.faults import Fault, enlist


class Overhanging(Convolutions):
    """With average pooling whose last windows reach over the edge."""

    def pool(self, x: Tensor, index: int) -> Tensor:
        """Smaller by half, rounded up."""
        if index == 0:
            return super().pool(x, index)
        return functional.avg_pool2d(x, 3, stride=2, ceil_mode=True)


class Dropping(Convolutions):
    """With features that are added to in place behind dropout, which is no copy in evaluation."""

    def described(self, features: Tensor) -> Tensor:
        """Features and what is kept of them, moved by their mean."""
        kept = functional.dropout(features, 0.1, self.training)
        kept += features.mean(dim=1, keepdim=True)
        return features + kept


class Slots(Modulated):
    """With attention in which tokens compete for what they look at, as in slot attention."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Weights add up to one over the tokens that look."""
        scores = (query @ key.transpose(-2, -1)).div(query.shape[-1] ** 0.5)
        return functional.softmax(scores, dim=-2) @ value


class SlotDiffusion(Diffusion):
    """The U-net with them in its middle."""

    def __init__(self) -> None:
        super().__init__()
        self.middle = Slots(self.joined.out_channels)


class Penalised(Recommender):
    """With a penalty on how steep an output is in each sample's features."""

    def __init__(self) -> None:
        super().__init__()
        self.steep = nn.Parameter(torch.tensor([1.0, -1.0]))
        self.register_buffer("places", torch.tensor([0, 2]))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """As without, and the penalty by gradients of single samples."""

        def output(row: Tensor) -> Tensor:
            parts = torch.stack([row[..., place].tanh() for place in range(4)], dim=-1)
            return (torch.index_select(parts, -1, self.places) * self.steep).sum()

        loss, logits = super().forward(batch)
        slopes = torch.func.vmap(torch.func.grad(output))(batch["dense"])
        return loss + 0.1 * (slopes.square().sum(dim=1) - 1).square().mean(), logits


class Counting(Recurrent):
    """With a counter that is changed in place after it was read."""

    def count(self) -> None:
        """A step more."""
        self.progress.add_(1)


def _with(model: type[nn.Module], family: Family) -> Family:
    return replace(family, model=model)


enlist(Fault(
    name="average-pooling-overhang", families=("convolutions",), kind="wrong gradient",
    issue=198119,
    title="gradient of average pooling in ceil mode divides overhanging windows by too much",
    defect="the last windows' gradient is divided by the whole window instead of what lies inside",
    same="it is the defect itself, in the compiler of this version",
    half="first", model=lambda family: _with(Overhanging, family),
))  # fmt: skip
enlist(Fault(
    name="attention-over-last-dimension", families=("diffusion",), kind="operator", issue=196468,
    title="a rewritten attention ignores over which dimension softmax is taken",
    defect="softmax over any dimension becomes attention with softmax over the last one",
    same="it is the defect itself, in the compiler of this version",
    half="first", model=lambda family: _with(SlotDiffusion, family),
))  # fmt: skip
enlist(Fault(
    name="addition-behind-dropout-lost", families=("convolutions",), kind="aliasing", issue=195422,
    title="an in-place change of what dropout returns in evaluation does not reach its input",
    defect="dropout that drops nothing returns its input, and the compiler took it for a copy",
    same="it is the defect itself, in the compiler of this version",
    half="first", model=lambda family: _with(Dropping, family),
))  # fmt: skip
enlist(Fault(
    name="gradients-of-samples", families=("recommender",), kind="accumulation", issue=188084,
    title="index_put on an expanded view is made in place and corrupts gradients",
    defect="gradients of single samples by torch.func summed into each other's memory",
    same="it is the defect itself, in the compiler of this version",
    half="first", model=lambda family: _with(Penalised, family),
))  # fmt: skip
enlist(Fault(
    name="buffer-read-again", families=("recurrent",), kind="aliasing", issue=197039,
    title="the backward pass reads inputs and buffers again that the forward pass has changed",
    defect="a factor is computed again, from the buffer as it is after its update",
    same="it is the defect itself, in the compiler of this version",
    half="first", model=lambda family: _with(Counting, family),
))  # fmt: skip
