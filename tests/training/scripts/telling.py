"""A training loop of a team's own that tells how each held-out example came out."""

import torch
from compilegate_runtime import outcomes
from torch import nn

torch.manual_seed(7)
inputs = torch.randn(32, 8)
labels = (inputs.sum(1) > 0).long()
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
right = model(inputs).argmax(1) == labels
outcomes.record("eval_accuracy", right, examples=inputs)
print(f"accuracy {right.float().mean():.4f}")
