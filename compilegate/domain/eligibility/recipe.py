"""Hyperparameters that count optimiser steps, where a candidate's steps hold more samples.

Names are those that widely used scripts have: transformers' Trainer (max_steps, warmup_steps),
the examples of transformers and diffusers (max_train_steps, num_warmup_steps, lr_warmup_steps),
nanoGPT (max_iters, warmup_iters), and this project's own (steps, full_run_steps).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.reason import Reason, warn

WARM_UP = ("warmup_steps", "num_warmup_steps", "lr_warmup_steps", "warmup_iters")
RUN_LENGTH = (
    "steps", "full_run_steps", "max_steps", "max_train_steps", "num_train_steps",
    "num_training_steps", "max_iters",
)  # fmt: skip
# Batches that one optimiser step adds up.
ACCUMULATION = "gradient_accumulation_steps"


def run_length_rule(context: Context) -> tuple[Reason, ...]:
    """The same number of larger steps is a longer run."""
    return tuple(
        warn(
            "run_length_unscaled", context.field("batch_size"),
            f"{name} stays {count} while a step holds {growth:.3g}x the samples: the candidate "
            "trains on as many times the data",
            fix=_fix(name, count, growth), source=WORKLOAD_FILE,
        )
        for name, count, growth in _unscaled(context, RUN_LENGTH)
    )  # fmt: skip


def warm_up_rule(context: Context) -> tuple[Reason, ...]:
    """The same number of larger steps is a longer warm-up."""
    return tuple(
        warn(
            "warmup_unscaled", context.field("batch_size"),
            f"{name} stays {count} while a step holds {growth:.3g}x the samples: the candidate "
            "warms up over as many times the data",
            fix=_fix(name, count, growth), source=WORKLOAD_FILE,
        )
        for name, count, growth in _unscaled(context, WARM_UP)
    )  # fmt: skip


def _unscaled(context: Context, names: Sequence[str]) -> Iterator[tuple[str, int, float]]:
    """(name, value, growth of a step) of each count that the candidate leaves as it is."""
    growth = _growth(context)
    if growth is None or growth == 1:
        return
    own = context.candidate.hyperparameters or {}
    base = context.workload.training.hyperparameters
    for name in names:
        count = _count(base.get(name))
        ignored = name == "steps" and _count(base.get("epochs"))  # as this project's scripts do
        if name not in own and count and not ignored:
            yield name, count, growth


def _count(value: Any) -> int:
    """A whole number above 0, however it is written; 0 where it is none."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0
    return int(number) if number > 0 and number.is_integer() else 0


def _fix(name: str, count: int, growth: float) -> str:
    return f"give the candidate hyperparameters: {{{name}: {max(1, round(count / growth))}}}"


def _growth(context: Context) -> float | None:
    """Samples of a step, the candidate's over the baseline's; None where devices are not known."""
    devices, before = context.devices, context.baseline.devices
    if devices is None or before is None:
        return None
    base = context.workload.training
    added = _count(context.hyperparameters.get(ACCUMULATION)) or 1
    added_before = _count(base.hyperparameters.get(ACCUMULATION)) or 1
    return context.batch_size * devices * added / (base.batch_size * before * added_before)
