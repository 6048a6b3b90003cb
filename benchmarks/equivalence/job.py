"""Training as a job does it: a model compiled by a backend or not, in a precision, to the end."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.equivalence.families import Batch, Family

PRECISIONS = ("fp32", "bf16")
HELD_OUT, HELD_OUT_SEED = 6, 10_000_019
WARM_SEED, WARM_STEPS = 10_000_079, 3
Compiler = Callable[[Any], Any]  # what makes a callable of a model: torch.compile with its settings


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager[Any]:
    """The context in which a job of a precision calls its model."""
    if precision == "bf16":
        return torch.autocast(device, torch.bfloat16)
    return contextlib.nullcontext()


def to(batch: Batch, device: str = "cpu", dtype: torch.dtype | None = None) -> Batch:
    """The batch on a device, its floating values in a type where one is named."""
    return {
        name: value.to(device, dtype if value.is_floating_point() else None)
        for name, value in batch.items()
    }


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation, without gradients."""
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(mode)


class Runs:
    """Whole trainings of a family from many seeds, by one compilation."""

    def __init__(
        self, family: Family, precision: str, device: str, compiler: Compiler | None
    ) -> None:
        self.family, self.precision, self.device = family, precision, device
        self.model = family.build(0).to(device)
        self.called = compiler(self.model) if compiler else self.model

    def metrics(self, seed: int) -> tuple[float, float]:
        """Held-out loss after training: as the job reports it, and of its weights in eager."""
        start = self.family.build(seed).to(self.device).state_dict()
        self.model.load_state_dict(copy.deepcopy(start))
        self.model.train()
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.family.rate)
        for batch in self.family.batches(seed, self.family.steps):
            with autocast(self.precision, self.device):
                loss, _ = self.called(to(batch, self.device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        eager = self.family.build(0).to(self.device)
        eager.load_state_dict(self.model.state_dict())
        return self._held_out(self.called, self.model), self._held_out(eager, eager)

    def _held_out(self, called: Any, model: nn.Module) -> float:
        with evaluating(model), autocast(self.precision, self.device):
            batches = self.family.batches(HELD_OUT_SEED, HELD_OUT, 64)
            losses = [called(to(batch, self.device))[0] for batch in batches]
        return torch.stack(losses).double().mean().item()


class Stepping:
    """An optimizer whose step is compiled, after a few steps of training."""

    def __init__(self, family: Family, model: nn.Module, compiler: Compiler) -> None:
        self.optimizer = torch.optim.Adam(model.parameters(), lr=family.rate)
        self.step = compiler(self.optimizer.step)
        device = next(model.parameters()).device.type
        for batch in family.batches(WARM_SEED, WARM_STEPS):
            dtype = next(model.parameters()).dtype
            model(to(batch, device, dtype))[0].backward()
            self.step()
            self.optimizer.zero_grad()


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter's gradient, zeros where there is none."""
    return {
        name: (torch.zeros_like(weight) if weight.grad is None else weight.grad).detach().clone()
        for name, weight in model.named_parameters()
    }
