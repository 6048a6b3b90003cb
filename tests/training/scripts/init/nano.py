"""A character model with its settings as constants, overridden by a configurator."""

from contextlib import nullcontext
from pathlib import Path

import torch
from torch import nn

eval_iters = 4
eval_interval = 20
batch_size = 8
block_size = 16
learning_rate = 1e-2
max_iters = 40
dtype = "float32"  # or bfloat16
exec((Path(__file__).parent / "configurator.py").read_text())

torch.manual_seed(1337)
kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
context = (
    nullcontext()
    if dtype == "float32"
    else torch.amp.autocast(device_type="cpu", dtype=kinds[dtype])
)
text = torch.arange(4096) % 37


def get_batch():
    """Random pieces of the text, and the same one place further."""
    starts = torch.randint(len(text) - block_size - 1, (batch_size,))
    pieces = [text[start : start + block_size + 1] for start in starts]
    both = torch.stack(pieces)
    return both[:, :-1], both[:, 1:]


model = nn.Sequential(nn.Embedding(37, 16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 37))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)


def loss_of(inputs, targets):
    """Cross-entropy of the next character."""
    with context:
        logits = model(inputs)
    return nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate_loss():
    """Mean loss over a few batches."""
    model.eval()
    losses = [loss_of(*get_batch()).item() for _ in range(eval_iters)]
    model.train()
    return sum(losses) / len(losses)


for iteration in range(max_iters + 1):
    if iteration % eval_interval == 0 or iteration == max_iters:
        print(f"step {iteration}: val loss {estimate_loss():.4f}")
    if iteration == max_iters:
        break
    loss = loss_of(*get_batch())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
