"""A loop on accelerate, as its examples have it."""

import argparse
import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description="Train a regressor")
    parser.add_argument("--per_device_train_batch_size", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=5e-2)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--max_train_steps", type=int, default=24)
    parser.add_argument("--seed", type=int, default=None)
    return parser.parse_args()


def main():
    """Train and evaluate."""
    args = parse_args()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    if args.seed is not None:
        set_seed(args.seed)
    rows = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(rows, rows.sum(1, keepdim=True))
    train = DataLoader(data, shuffle=True, batch_size=args.per_device_train_batch_size)
    held_out = DataLoader(data, batch_size=16)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    model, optimizer, train, held_out = accelerator.prepare(model, optimizer, train, held_out)
    completed = 0
    for epoch in range(args.num_train_epochs):
        model.train()
        for inputs, targets in train:
            loss = nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            completed += 1
            if completed >= args.max_train_steps:
                break
        model.eval()
        losses = []
        for inputs, targets in held_out:
            with torch.no_grad():
                loss = nn.functional.mse_loss(model(inputs), targets)
            losses.append(accelerator.gather(loss.repeat(1)))
        eval_loss = torch.cat(losses).mean().item()
        accelerator.print(
            f"epoch {epoch}: eval_loss: {eval_loss} perplexity: {math.exp(eval_loss)}"
        )
        if completed >= args.max_train_steps:
            break


if __name__ == "__main__":
    main()
