"""A training script that saves checkpoints of its own, and goes on from one if it is there."""

import argparse
import time
from pathlib import Path

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--folder", default=".")
parser.add_argument("--resume", default="yes")
parser.add_argument("--pause", type=float, default=0.0)
args = parser.parse_args()

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
place, begin = Path(args.folder) / "last.pt", 0
if args.resume == "yes" and place.exists():
    saved = torch.load(place)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    begin = saved["step"]
for step in range(begin, 12):
    torch.manual_seed(step)
    rows = torch.randn(8, 4)
    loss = ((model(rows) - rows.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2 == 1:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
        torch.save(state, place.with_suffix(".new"))
        place.with_suffix(".new").replace(place)
    time.sleep(args.pause)
