"""Trains a tiny model that is compiled, in one process or in two that share their gradients."""

import os
import time

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
inputs = torch.randn(16, 8)
labels = (inputs.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
if int(os.environ.get("WORLD_SIZE", "1")) > 1:
    distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
if os.environ.get("LATE") == os.environ.get("RANK", "0"):
    time.sleep(1.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows, targets in DataLoader(TensorDataset(inputs, labels), batch_size=4):
    loss = nn.functional.cross_entropy(model(rows), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"final loss {loss.item():.4f}")
if distributed.is_initialized():
    distributed.destroy_process_group()
