"""A small causal language model, trained from scratch on text: next-byte prediction.

Reads every ``*.jsonl`` of the channels ``train`` and ``validation`` (key ``text``), runs on a
GPU or a CPU, and reports ``eval_loss`` in nats per byte. The architecture is that of current
decoder models (RMSNorm before and after each block, rotary positions, normalised queries
and keys, gated tanh-GELU), written out in plain PyTorch: no fused kernel hides in the
baseline, and none is taken from it (attention and AdamW are PyTorch's own fused ones).
"""

import json
import math

import torch
from compilegate_runtime import environment, job, seeds
from torch import nn
from torch.nn import functional

# Hyperparameters: each can be given as --name value.
KNOBS = {
    # model
    "width": 64,  # model width
    "layers": 6,
    "heads": 4,
    "block": 64,  # bytes of context; every sample has exactly this length: static shapes
    # training
    "steps": 2000,  # optimiser steps of a full run
    "batch_size": 4,  # blocks per step
    "learning_rate": 6e-3,  # peak, after warm-up, then cosine down to zero
    "warmup_steps": 100,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
    # evaluation
    "eval_blocks": 512,  # held-out blocks at the end, the same ones in every run
}
VOCABULARY = 256  # bytes
EVAL_BATCH = 16


# ---- data ---------------------------------------------------------------------------------


def load_bytes(channel):
    """All documents of a channel as one tensor of bytes, a zero byte between documents."""
    documents = [
        json.loads(line)["text"].encode()
        for path in sorted(environment.channel(channel).glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return torch.frombuffer(bytearray(b"\0".join(documents)), dtype=torch.uint8)


def blocks_at(data, starts, block):
    """Inputs and next-byte targets of the blocks that begin at ``starts``."""
    rows = torch.stack([data[start : start + block + 1] for start in starts]).long()
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


# ---- model --------------------------------------------------------------------------------


class Norm(nn.Module):
    """Root-mean-square normalisation with a learned scale."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        """Scale each vector to unit root mean square."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


def rotate(x, cosine, sine):
    """Turn pairs of features by an angle that grows with the position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)


class Attention(nn.Module):
    """Causal self-attention with normalised, rotated queries and keys."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width, bias=False)
        self.project_out = nn.Linear(width, width, bias=False)
        self.query_norm = Norm(width // heads)
        self.key_norm = Norm(width // heads)

    def forward(self, x, cosine, sine):
        """Mix each position with those before it."""
        batch, length, width = x.shape
        q, k, v = (
            self.project_in(x)
            .view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        q = rotate(self.query_norm(q), cosine, sine)
        k = rotate(self.key_norm(k), cosine, sine)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project_out(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    """Gated feed-forward layer, tanh-GELU gate."""

    def __init__(self, width):
        super().__init__()
        hidden = width * 8 // 3 // 16 * 16
        self.project_in = nn.Linear(width, 2 * hidden, bias=False)
        self.project_out = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        """Transform each position by itself."""
        gate, value = self.project_in(x).chunk(2, dim=-1)
        return self.project_out(functional.gelu(gate, approximate="tanh") * value)


class Block(nn.Module):
    """One layer: attention and feed-forward, each normalised before and after."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed_forward = FeedForward(width)
        self.norms = nn.ModuleList(Norm(width) for _ in range(4))

    def forward(self, x, cosine, sine):
        """Add what the two parts compute to the residual stream."""
        x = x + self.norms[1](self.attention(self.norms[0](x), cosine, sine))
        return x + self.norms[3](self.feed_forward(self.norms[2](x)))


class LanguageModel(nn.Module):
    """Byte-level decoder; returns the mean cross-entropy of the next byte."""

    def __init__(self, knobs):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, knobs.width)
        self.layers = nn.ModuleList(Block(knobs.width, knobs.heads) for _ in range(knobs.layers))
        self.norm = Norm(knobs.width)
        self.head = nn.Linear(knobs.width, VOCABULARY, bias=False)
        for module in self.modules():  # every layer starts with outputs of unit size
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
        nn.init.normal_(self.embedding.weight)
        size = knobs.width // knobs.heads
        frequency = 10000.0 ** (-torch.arange(0, size, 2) / size)
        angle = torch.arange(knobs.block)[:, None] * frequency[None]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)

    def forward(self, inputs, targets):
        """Loss of predicting ``targets`` from ``inputs``."""
        x = self.embedding(inputs)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


# ---- training -----------------------------------------------------------------------------


def learning_rate_at(step, knobs):
    """Share of the peak learning rate: linear warm-up, then cosine down to zero."""
    if step < knobs.warmup_steps:
        return (step + 1) / knobs.warmup_steps
    done = (step - knobs.warmup_steps) / max(1, knobs.steps - knobs.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def train(this):
    """One run: the recorder times each step, the compiler is what the arm says."""
    knobs, device = this.settings, this.device
    data = load_bytes("train")
    starts = range(0, len(data) - knobs.block - 1, knobs.block)
    model = device.convert(LanguageModel(knobs).to(device.kind))
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=knobs.learning_rate,
        betas=(0.9, 0.95),
        weight_decay=knobs.weight_decay,
        fused=device.fuses_optimizer,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_at(step, knobs)
    )
    forward = this.compiler.apply(model)
    batches = (
        blocks_at(data, [starts[index] for index in chosen], knobs.block)
        for chosen in seeds.batches(knobs.seed, len(starts), knobs.batch_size)
    )
    for inputs, targets in this.recorder.steps(batches):
        with device.autocast():
            loss = forward(inputs.to(device.kind), targets.to(device.kind))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), knobs.clip_norm)
        this.compiler.step(optimizer)
        rate = schedule.get_last_lr()[0]
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        this.recorder.end_step(
            loss,
            samples=knobs.batch_size,
            tokens=knobs.batch_size * knobs.block,
            learning_rate=rate,
            gradient_norm=norm,
        )
    if this.evaluates:
        this.recorder.metric("eval_loss", evaluate(model, knobs, device))
        save(model, this.compiler)


@torch.no_grad()
def evaluate(model, knobs, device):
    """Mean loss over evenly spaced held-out blocks, by the model as written in both arms."""
    data = load_bytes("validation")
    last = len(data) - knobs.block - 1
    starts = [last * i // (knobs.eval_blocks - 1) for i in range(knobs.eval_blocks)]
    losses = []
    for begin in range(0, len(starts), EVAL_BATCH):
        inputs, targets = blocks_at(data, starts[begin : begin + EVAL_BATCH], knobs.block)
        with device.autocast():
            losses.append(float(model(inputs.to(device.kind), targets.to(device.kind))))
    return sum(losses) / len(losses)


def save(model, compiler):
    """Leave the weights where the job's model artifact is made from."""
    folder = environment.model_folder()
    if folder is not None:
        compiler.save(model.state_dict(), folder / "model.pt")


def _mp_fn(index):
    """Where the managed compiler's launcher starts each of its processes."""
    job.run(train, KNOBS, index=index)


if __name__ == "__main__":
    job.run(train, KNOBS)
