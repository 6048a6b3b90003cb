"""Small scripts to examine, and their findings."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from compilegate_doctor import Finding, examine
from compilegate_doctor.finding import MANAGED_COMPILER, TORCH_COMPILE

__all__ = ["MANAGED_COMPILER", "TORCH_COMPILE"]

LOOP = """
import random, time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def train(model, loader, optimizer, criterion, device, args, evaluate, logger, log_every):
    total = 0.0
    for step, (inputs, labels) in enumerate(loader):
        inputs, labels = inputs.to(device), labels.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
{body}
    return total
"""
MODEL = """
import random, time
import numpy as np
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0
        self.seen = []
        self.depth = 3

    def forward(self, x, scale=1.0, mask=None):
        y = self.layer(x)
{body}
        return y
"""


def loop(body: str, *, after: str = "") -> str:
    """A training loop that ends each step with ``body``."""
    indented = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    return LOOP.format(body=indented) + textwrap.dedent(after)


def model(body: str, *, after: str = "") -> str:
    """A model whose forward computes ``y`` from ``x`` and then runs ``body``."""
    indented = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    return MODEL.format(body=indented) + after


def trained(before: str) -> str:
    """A script that prepares something and then trains."""
    return textwrap.dedent(before) + loop("pass")


def findings(
    source: str, *compilers: str, hyperparameters: Mapping[str, Any] | None = None
) -> tuple[Finding, ...]:
    """What the doctor finds, for both compilers unless said."""
    chosen = compilers or (TORCH_COMPILE, MANAGED_COMPILER)
    return examine(
        source.encode(), "train.py", compilers=chosen, hyperparameters=hyperparameters
    ).findings


def rules(
    source: str, *compilers: str, hyperparameters: Mapping[str, Any] | None = None
) -> set[str]:
    """The rules that found something."""
    return {
        finding.rule for finding in findings(source, *compilers, hyperparameters=hyperparameters)
    }
