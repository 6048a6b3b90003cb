"""The equivalence check on one compilation: with a fault, or a sound one.

A sound compilation is real, by one of MODES, and serves many seeds of weights and batches: what
the check would compile anew for each is compiled once, since the code is the same for all.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from benchmarks.equivalence.families import FAMILIES, Batch, Family
from benchmarks.equivalence.faults import Fault
from benchmarks.equivalence.faulty import Faulty, compiler
from benchmarks.equivalence.job import HELD_OUT_SEED, Compiler, Runs, Stepping, autocast, to

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
from compilegate_runtime import equivalence  # noqa: E402 - the runtime is no installed package

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "aot_eager": {"backend": "aot_eager"},
    "dynamic": {"dynamic": True},
    "strict": {"options": {"emulate_precision_casts": True}},
    "max-autotune": {"mode": "max-autotune-no-cudagraphs"},
    "reduce-overhead": {"mode": "reduce-overhead"},  # captures graphs on a GPU only
}
# Compilations that are not sound, by kind of device: called without any check as well, once the
# size of batches has changed, PyTorch 2.13's backward pass on a CPU gives NaN in bf16 and fails an
# assertion in fp32.
UNSOUND = {("cpu", "recommender", "max-autotune")}
SEEDS = dict(zip(MODES, (14, 4, 8, 8, 6, 6), strict=True))
SEEDS_OF_DRAWING = 2  # of a model whose random numbers are looked at, which is compiled each time
STEPPED = (("recurrent", "default"), ("recommender", "aot_eager"))  # the optimizer is compiled, too
LAST_SIZE, OTHER_SIZE, LIMIT_SECONDS = 5, 11, 600.0


def subject(
    family: Family,
    model: nn.Module,
    precision: str,
    device: str,
    *,
    seed: int,
    compile_anew: Compiler,
    stepping: Stepping | None = None,
) -> equivalence.Subject:
    """A job of the family as the check is given it; batches of the seed."""
    called = compile_anew(model)

    def batches(number: int, count: int, size: int | None = None) -> list[Batch]:
        return [to(one, device) for one in family.batches(number, count, size)]

    return equivalence.Subject(
        model,
        lambda batch: called(batch)[0],
        batches(seed, equivalence.STEPS),
        precision=precision,
        autocast=functools.partial(autocast, precision, device),
        compiled=called,
        call_with=lambda function, batch: function(batch)[0],
        compile_anew=compile_anew,
        last_batch=batches(seed + 1, 1, LAST_SIZE)[0],
        recompiled=batches(seed + 2, 1, OTHER_SIZE),
        evaluation=batches(HELD_OUT_SEED + seed, 2, family.size),
        evaluate=lambda function, batch: list(function(batch)),
        accumulation=2,
        optimizer=stepping.optimizer if stepping else None,
        compiled_step=stepping.step if stepping else None,
    )


def with_fault(
    fault: Fault, family: Family, precision: str, device: str, weights: str
) -> tuple[dict[str, Any], int]:
    """The check's document of a fault, and in how many places the fault changed graphs.

    With the ``last`` weights, they are those of a whole training with the fault, by whose compiled
    code the check is made as well.
    """
    torch.compiler.reset()
    backends: list[Faulty] = []

    def compile_anew(model: nn.Module) -> Any:
        if fault.live:
            return torch.compile(model)
        compiled, backend = compiler(fault)
        backends.append(backend)
        return compiled(model)

    model, first = family.build(1).to(device), []
    if weights == "last":
        runs = Runs(family, precision, device, compile_anew)
        runs.metrics(1)
        model, first = runs.model, [runs.called]
    stepping = None
    if fault.stage == "optimizer":
        step, backend = compiler(fault, optimizer=True)
        backends.append(backend)
        stepping = Stepping(family, model, step)
    job = subject(
        family, model, precision, device, seed=1, stepping=stepping,
        compile_anew=lambda one: first.pop() if first else compile_anew(one),
    )  # fmt: skip
    document = equivalence.examine(job, weights=weights, limit_seconds=LIMIT_SECONDS)
    return document, sum(backend.applied for backend in backends)


def draws(model: nn.Module) -> bool:
    """Whether a model draws random numbers in training."""
    return any(isinstance(one, nn.Dropout) for one in model.modules())


class Sound:
    """A sound compilation of a family, examined with the weights and batches of many seeds."""

    def __init__(self, family: str, precision: str, mode: str, device: str) -> None:
        self.family, self.precision, self.device = FAMILIES[family], precision, device
        self._settings = MODES[mode]
        self._model = self.family.build(0).to(device)
        self._draws = draws(self._model)
        self._steps = (family, mode) in STEPPED
        self._stepping: Stepping | None = None
        self._compiled: Any = None
        torch.compiler.reset()

    def document(self, seed: int) -> dict[str, Any]:
        """The check at the weights of a seed."""
        self._model.load_state_dict(self.family.build(seed).state_dict())
        with contextlib.nullcontext() if self._draws else self._kept():
            if self._steps and self._stepping is None:
                self._stepping = Stepping(self.family, self._model, self._compile_step)
            job = subject(
                self.family,
                self._model,
                self.precision,
                self.device,
                seed=seed,
                compile_anew=self._compile_anew,
                stepping=self._stepping,
            )
            return equivalence.examine(job, limit_seconds=LIMIT_SECONDS)

    def _compile_step(self, step: Any) -> Any:
        return torch.compile(step, **self._settings)

    def _compile_anew(self, model: nn.Module) -> Any:
        from torch._dynamo.utils import counters  # noqa: PLC0415

        if self._draws:
            return torch.compile(model, **self._settings)
        counters["stats"]["unique_graphs"] += 1  # as if it were compiled here
        if self._compiled is None:
            self._compiled = torch.compile(model, **self._settings)
        return self._compiled

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """What was compiled is not forgotten; settings that it depends on are its own guards."""
        with mock.patch.object(torch.compiler, "reset"):
            yield
