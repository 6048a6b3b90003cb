"""A training script that calls torch.compile itself, in one of the ways there are."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--how")
args = parser.parse_args()

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def loss_of(rows):
    """The loss of one batch."""
    return ((called(rows) - rows.sum(1, keepdim=True)) ** 2).mean()


called = model
if args.how == "method":
    model.forward = torch.compile(model.forward, backend="eager")
elif args.how == "in_place":
    model.compile(backend="eager")
elif args.how == "library":  # the model cannot be compiled, and something else is
    model.forward = torch._dynamo.disable(model.forward)
    compiled_by_a_library = torch.compile(nn.functional.silu)
    called = lambda rows: compiled_by_a_library(model(rows))  # noqa: E731 — a script's shortcut
elif args.how == "decorator":
    loss_of = torch.compile(backend="eager")(loss_of)
for _ in range(3):
    loss = loss_of(torch.randn(8, 4))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("the script's own graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
print("by inductor", torch._dynamo.utils.counters["inductor"]["fxgraph_cache_miss"]
      + torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
      + torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"])  # fmt: skip
