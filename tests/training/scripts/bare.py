"""A training script without a data loader, a seed of its own, or arguments for a trial."""

import argparse
import os
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="linear")
parser.add_argument("--stop", default="")
parser.add_argument("--how", default="")
parser.add_argument("--go", default="")
parser.add_argument("--pause", type=float, default=0.0)
args = parser.parse_args()
if args.go:
    os.chdir(args.go)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    rows = torch.randn(8, 4)
    time.sleep(args.pause)
    outputs = model(rows) if args.model == "linear" else rows @ model.weight.T
    loss = ((outputs - rows.sum(1, keepdim=True)) ** 2).mean()
    if step > 2 and args.stop:
        raise SystemExit(args.stop)
    if args.how == "autograd":
        torch.autograd.backward([loss])
    else:
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
