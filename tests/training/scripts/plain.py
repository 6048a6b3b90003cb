"""A training script that knows nothing of Compilegate, and does what such scripts do."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--dtype", default="float32")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--pause", type=float, default=0.0)
args = parser.parse_args()

torch.manual_seed(7)
inputs = torch.randn(32, 8)
labels = (inputs.sum(1) > 0).long()
training = DataLoader(TensorDataset(inputs, labels), batch_size=args.batch_size, shuffle=True)
held_out = DataLoader(TensorDataset(inputs, labels), batch_size=8)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
if args.compile:
    model = torch.compile(model)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(args.epochs):
    model.train()
    for number, (rows, targets) in enumerate(training, start=1):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bfloat16"):
            loss = criterion(model(rows), targets) / args.accumulate
        loss.backward()
        if number % args.accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        right = 0
        for rows, targets in held_out:
            time.sleep(args.pause)
            right += (model(rows).argmax(1) == targets).sum().item()
    print(f"epoch {epoch}: accuracy {right / len(labels):.4f}")
