"""Five families of models as miniatures: each a model, batches of a small world, and a metric.

Every model takes a batch, a dict of tensors, and returns its loss and its output. In training the
loss is what is differentiated; in evaluation the mean loss over held-out batches is the metric,
lower is better.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

Batch = dict[str, Tensor]
IGNORED = -100  # cross_entropy's own mark of a target that does not count


@dataclass(frozen=True)
class Family:
    """A model, its data and how long a whole training takes."""

    name: str
    model: Callable[[], nn.Module]
    batch: Callable[[torch.Generator, int], Batch]
    steps: int = 200
    size: int = 16
    rate: float = 3e-3

    def build(self, seed: int) -> nn.Module:
        """A model with the weights of a seed."""
        torch.manual_seed(seed)
        return self.model()

    def batches(self, seed: int, count: int, size: int | None = None) -> list[Batch]:
        """Batches of a seed."""
        generator = torch.Generator().manual_seed(seed)
        return [self.batch(generator, size or self.size) for _ in range(count)]


class Attention(nn.Module):
    """Causal attention written out, with dropout."""

    def __init__(self, width: int, heads: int, length: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.joined = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, length, width) in and out."""
        batch, length, width = x.shape
        parts = self.joined(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        mixed = self.dropout(torch.softmax(scores, dim=-1)) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer's layer."""

    def __init__(self, width: int, heads: int, length: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, length, dropout)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, length, width) in and out."""
        x = x + self.dropout(self.attention(self.first(x)))
        return x + self.dropout(self.narrow(functional.gelu(self.wide(self.second(x)))))


class Transformer(nn.Module):
    """A causal language model whose head shares the embedding's weights."""

    def __init__(
        self, words: int = 32, width: int = 32, length: int = 16, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, 4, length, dropout) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)
        self.head.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=0.2)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """``text``: (batch, length); ``target``: the next word, or IGNORED."""
        x = self.words(batch["text"]) + self.places
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        target = batch["target"]
        loss = functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=IGNORED
        )
        return loss, logits


def text(generator: torch.Generator, size: int, words: int = 32, length: int = 16) -> Batch:
    """Sentences whose next word follows from two before, but for one in ten; of unequal lengths."""
    rows = [torch.randint(words, (size,), generator=generator) for _ in range(2)]
    while len(rows) <= length:
        random = torch.randint(words, (size,), generator=generator)
        chance = torch.rand(size, generator=generator) < 0.1
        rows.append(torch.where(chance, random, (rows[-1] + 2 * rows[-2] + 1) % words))
    sentences = torch.stack(rows, dim=1)
    ends = torch.randint(length // 2, length + 1, (size, 1), generator=generator)
    target = sentences[:, 1:].masked_fill(torch.arange(length) >= ends, IGNORED)
    return {"text": sentences[:, :length].contiguous(), "target": target}


class Residual(nn.Module):
    """Two convolutions with group norm, moved by the time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.GroupNorm(4, width), nn.GroupNorm(4, width)
        self.one, self.two = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(width, width)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Shape (batch, width, height, height) in and out."""
        inner = self.one(functional.silu(self.first(x))) + self.time(time)[:, :, None, None]
        return x + self.two(functional.silu(self.second(inner)))


class Modulated(nn.Module):
    """Attention and a feed-forward behind layer norms that one table scales and shifts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.2 * torch.randn(6, width))
        self.time = nn.Linear(width, 6 * width)
        self.joined, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Shape (batch, tokens, width) in and out."""
        width = x.shape[-1]
        table = self.table + self.time(time).view(-1, 6, width)
        shift, scale, gate, shift2, scale2, gate2 = table.chunk(6, dim=1)
        inner = functional.layer_norm(x, (width,)) * (1 + scale) + shift
        query, key, value = (
            part.unflatten(-1, (2, width // 2)).transpose(1, 2)
            for part in self.joined(inner).chunk(3, dim=-1)
        )
        mixed = self.attend(query, key, value)
        x = x + gate * self.out(mixed.transpose(1, 2).flatten(2))
        inner = functional.layer_norm(x, (width,)) * (1 + scale2) + shift2
        return x + gate2 * self.narrow(functional.gelu(self.wide(inner), approximate="tanh"))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Every token looks at all."""
        return functional.scaled_dot_product_attention(query, key, value)


class Diffusion(nn.Module):
    """A small U-net that finds the noise in a picture."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.into = nn.Conv2d(1, width, 3, padding=1)
        self.down, self.up = Residual(width), Residual(width)
        self.middle = Modulated(width)
        self.joined = nn.Conv2d(2 * width, width, 1)
        self.norm = nn.GroupNorm(4, width)
        self.out = nn.Conv2d(width, 1, 3, padding=1, padding_mode="reflect")
        self.register_buffer("frequencies", torch.exp(torch.linspace(0, 4, width // 2)))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """``picture`` and ``noise``: (batch, 1, 8, 8); ``time``: (batch,) in (0, 1)."""
        picture, noise, time = batch["picture"], batch["noise"], batch["time"]
        level = time[:, None, None, None]
        angles = time[:, None] * self.frequencies
        waves = torch.cat([angles.sin(), angles.cos()], dim=1)
        fine = self.down(self.into((1 - level).sqrt() * picture + level.sqrt() * noise), waves)
        coarse = functional.avg_pool2d(fine, 2)
        tokens = self.middle(coarse.flatten(2).transpose(1, 2), waves)
        coarse = tokens.transpose(1, 2).unflatten(2, coarse.shape[2:])
        wide = functional.interpolate(coarse, scale_factor=2.0, mode="bilinear")
        x = self.up(self.joined(torch.cat([wide, fine], dim=1)), waves)
        predicted = self.out(functional.silu(self.norm(x)))
        error = functional.mse_loss(predicted, noise, reduction="none").mean(dim=(1, 2, 3))
        return (error * (0.5 + time)).mean(), predicted


def pictures(generator: torch.Generator, size: int) -> Batch:
    """Stripes of a random direction, with noise of a random level."""
    phase, slope = (torch.rand(size, 1, 1, generator=generator) for _ in range(2))
    line = torch.arange(8.0)
    stripes = torch.sin(6 * phase + line[:, None] * slope + line * (1 - slope))
    noise = torch.randn(size, 1, 8, 8, generator=generator)
    time = 0.02 + 0.96 * torch.rand(size, generator=generator)
    return {"picture": stripes[:, None], "noise": noise, "time": time}


class Convolutions(nn.Module):
    """Three convolutions with batch norm, and a classifier."""

    def __init__(self, width: int = 16, classes: int = 8) -> None:
        super().__init__()
        sizes = (3, width, 2 * width, 2 * width)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1) for a, b in itertools.pairwise(sizes)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in sizes[1:])
        self.head = nn.Linear(2 * width, classes)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """``picture``: (batch, 3, 12, 12); ``target``: (batch,)."""
        x = batch["picture"]
        for index, (convolution, norm) in enumerate(
            zip(self.convolutions, self.norms, strict=True)
        ):
            x = functional.relu(norm(convolution(x)))
            if index < 2:
                x = self.pool(x, index)
        logits = self.head(self.described(functional.adaptive_avg_pool2d(x, 1).flatten(1)))
        return functional.cross_entropy(logits, batch["target"], label_smoothing=0.05), logits

    def described(self, features: Tensor) -> Tensor:
        """What the classifier sees of the features, shape (batch, 2 width)."""
        return features

    def pool(self, x: Tensor, index: int) -> Tensor:
        """Smaller by half."""
        return functional.max_pool2d(x, 2) if index == 0 else functional.avg_pool2d(x, 2)


def classes(generator: torch.Generator, size: int) -> Batch:
    """Eight patterns in noise, shifted in place and in colour."""
    target = torch.randint(8, (size,), generator=generator)
    shift = 2 * torch.rand(size, 1, 1, generator=generator)
    line = torch.arange(12.0)
    angle = target[:, None, None] * 0.4
    waves = torch.sin(shift + line[:, None] * angle.cos() + line * angle.sin())
    colours = 0.5 + torch.rand(size, 3, 1, 1, generator=generator)
    noise = 2 * torch.randn(size, 3, 12, 12, generator=generator)
    return {"picture": waves[:, None] * colours + noise + 0.5, "target": target}


class Recommender(nn.Module):
    """Embeddings of sparse features, their products, and a network over all."""

    def __init__(self, fields: int = 5, values: int = 120, width: int = 8) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(values, width) for _ in range(fields))
        self.history = nn.Embedding(values, width, padding_idx=0)
        self.dense = nn.Linear(4, width)
        self.own = nn.Parameter(torch.zeros(fields + 2))
        pairs = torch.triu_indices(fields + 2, fields + 2)
        self.register_buffer("pairs", pairs)
        self.wide = nn.Linear(width + pairs.shape[1], 32)
        self.out = nn.Linear(32, 1)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """``fields``: (batch, 5); ``history``: (batch, 10), 0 is none; ``dense``: (batch, 4)."""
        seen = batch["history"] > 0
        total = self.pooled(self.history(batch["history"]) * seen[:, :, None])
        dense = functional.relu(self.dense(batch["dense"]))
        parts = [table(batch["fields"][:, i]) for i, table in enumerate(self.tables)]
        parts += [total / seen.sum(dim=1, keepdim=True).clamp(min=1), dense]
        stacked = torch.stack(parts, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        own = self.own.expand(products.shape[0], -1)
        products = products.diagonal_scatter(own, dim1=1, dim2=2)
        chosen = self.chosen(products)
        hidden = functional.relu(self.wide(torch.cat([dense, chosen], dim=1)))
        logits = self.out(hidden).squeeze(1)
        return functional.binary_cross_entropy_with_logits(logits, batch["target"]), logits

    def pooled(self, history: Tensor) -> Tensor:
        """The sum over what was visited, shape (batch, width)."""
        return history.sum(dim=1)

    def chosen(self, products: Tensor) -> Tensor:
        """Every pair once, shape (batch, pairs)."""
        return products[:, self.pairs[0], self.pairs[1]]


def visits(generator: torch.Generator, size: int) -> Batch:
    """Visits whose outcome hangs on pairs of features; popular values are common."""
    skewed = torch.rand(size, 5, generator=generator) ** 3
    fields = (skewed * 120).long()
    history = (torch.rand(size, 10, generator=generator) ** 3 * 120).long()
    dense = torch.randn(size, 4, generator=generator)
    agree = ((fields[:, 0] + fields[:, 1]) % 3 == 0).float() + (history % 7 == 2).float().mean(
        dim=1
    )
    chance = torch.sigmoid(2 * agree + dense[:, 0] - 1.5)
    target = (torch.rand(size, generator=generator) < chance).float()
    return {"fields": fields, "history": history, "dense": dense, "target": target}


class Recurrent(nn.Module):
    """Gated recurrent cells that foretell a series, with a penalty that fades in training."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.into, self.over = nn.Linear(2, 3 * width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, 2)
        self.start = nn.Parameter(torch.zeros(width))
        self.register_buffer("progress", torch.zeros(1))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """``series``: (batch, length + 1, 2)."""
        series = batch["series"]
        hidden = self.start.expand(series.shape[0], -1)
        states = hidden[:, None].repeat(1, series.shape[1], 1)
        for place, x in enumerate(series[:, :-1].unbind(dim=1), start=1):
            reset, update, new = self.into(x).chunk(3, dim=1)
            reset_h, update_h, new_h = self.over(hidden).chunk(3, dim=1)
            keep = torch.sigmoid(update + update_h)
            fresh = torch.tanh(new + torch.sigmoid(reset + reset_h) * new_h)
            hidden = keep * hidden + (1 - keep) * fresh
            states[:, place] = hidden
        predicted = self.out(states)
        loss = functional.smooth_l1_loss(predicted, series)
        if self.training:
            fading = torch.exp(-self.progress / 40).squeeze(0)
            loss = loss + 0.3 * fading * states.pow(2).mean()
            self.count()
        return loss, predicted

    def count(self) -> None:
        """A step more; not in place, see the fault ``buffer-read-again``."""
        self.progress = self.progress + 1


def series(generator: torch.Generator, size: int, length: int = 6) -> Batch:
    """Two waves of unequal speed, one driving the other, with noise."""
    time = torch.arange(length + 1.0)
    speed, phase = (torch.rand(size, 1, generator=generator) for _ in range(2))
    slow = torch.sin((0.3 + speed) * time + 6 * phase)
    both = torch.stack([slow, slow.roll(1, dims=1) * slow], dim=2)
    return {"series": both + 0.05 * torch.randn(both.shape, generator=generator)}


FAMILIES = {
    one.name: one  # the quickest to compile first
    for one in (
        Family("recommender", Recommender, visits, steps=300, size=64),
        Family("convolutions", Convolutions, classes),
        Family("recurrent", Recurrent, series),
        Family("diffusion", Diffusion, pictures),
        Family("transformer", Transformer, text, steps=300),
    )
}
