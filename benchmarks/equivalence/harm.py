"""Whether a fault is harmful: by its effect on gradients, buffers and evaluation, or by full runs.

Both are measured without the check. The faulty compiler runs eager's own kernels, so that what
differs from eager is the fault's effect. Of a tensor p of a step, where G is all gradients of it:

    effect(p) = |p_fault - p| / max(|p|, 0.01 |G|)

in double precision, where rounding is far below, or in the job's own where there is none. A fault
whose effect is above ABOVE is harmful by gradients. For a fault in random numbers, other numbers
of the same distribution are none: it is harmful if mean or variance over DRAWS differ.

Full runs compare the held-out loss at the end over SEEDS: harmful where it differs from eager's
by more than MARGIN of it and three standard errors, as the job reports it, or of its weights.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._inductor import config

from benchmarks.equivalence.families import Family
from benchmarks.equivalence.faults import Fault
from benchmarks.equivalence.faulty import compiler
from benchmarks.equivalence.job import Runs, Stepping, autocast, evaluating, gradients, to

ABOVE = {"fp32": 1e-5, "bf16": 1e-2}
DRAWS, SEEDS, MARGIN = 100, (1, 2, 3), 0.01
Observe = Callable[..., list[dict[str, Tensor]]]
OTHER_SIZE, SIZES = 5, (None, None, None, 5, 11)


def by_gradients(fault: Fault, family: Family, precision: str, device: str) -> dict[str, Any]:
    """The largest effect, on what, and whether it is above rounding."""
    if fault.random:
        return _by_draws(fault, family, precision, device)
    where, effect = _effect(fault, family, "fp32", device, double=True)
    if not effect:
        where, effect = _effect(fault, family, precision, device)
    return {"harmful": effect > ABOVE[precision], "effect": effect, "where": where}


@functools.lru_cache(maxsize=8)
def _effect(
    fault: Fault, family: Family, precision: str, device: str, *, double: bool = False
) -> tuple[str, float]:
    observe = _stepped if fault.stage == "optimizer" else _observed
    faulted = observe(fault, family, precision, device, double=double)
    right = _without_fault(observe, family, precision, device, double=double)
    worst = ("nothing", 0.0)
    for faulty, sound in zip(faulted, right, strict=True):
        whole = _length(sound, "gradient ")
        for name, value in sound.items():
            length = max(float(value.norm()), 0.01 * whole if name.startswith("gradient") else 0.0)
            apart = float((faulty[name] - value).norm())
            effect = (apart / length if length else math.inf) if apart else 0.0
            worst = max(
                worst, (name, math.inf if math.isnan(effect) else effect), key=lambda one: one[1]
            )
    return worst


@functools.lru_cache(maxsize=8)
def _without_fault(
    observe: Observe, family: Family, precision: str, device: str, *, double: bool
) -> list[dict[str, Tensor]]:
    """The same for every fault of a family."""
    return observe(None, family, precision, device, double=double)


def _compiled(fault: Fault | None, model: nn.Module) -> Any:
    """What is called: the model itself without a fault, since older compilers have some."""
    if fault is None:
        return model
    return torch.compile(model) if fault.live else compiler(fault)[0](model)


def _length(values: dict[str, Tensor], kind: str) -> float:
    return math.hypot(
        *(float(value.norm()) for name, value in values.items() if name.startswith(kind))
    )


def _observed(
    fault: Fault | None, family: Family, precision: str, device: str, *, double: bool
) -> list[dict[str, Tensor]]:
    """Of each step gradients, buffers and accumulated gradients, and at last the evaluation."""
    torch.compiler.reset()
    dtype = torch.float64 if double else None
    model = family.build(1).to(device, dtype)
    called, rate, seen = _compiled(fault, model), 1e-3, []
    batches = [to(family.batches(7 + i, 1, size)[0], device, dtype) for i, size in enumerate(SIZES)]
    for number, group in enumerate([*([one] for one in batches), batches[:2]]):
        model.zero_grad()
        torch.manual_seed(number)
        for batch in group:
            with autocast(precision, device), config.patch(fallback_random=True):
                loss = called(batch)[0]  # a live fault's compiler draws eager's numbers
            loss.backward()
        made = {f"gradient {name}": value for name, value in gradients(model).items()}
        made["loss"] = loss.detach()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.grad is not None:
                    weight.add_(weight.grad, alpha=-rate)
        buffers = {name: one.detach().clone() for name, one in model.named_buffers()}
        seen.append(
            made
            | {f"buffer {name}": one for name, one in buffers.items() if one.is_floating_point()}
        )
    with evaluating(model), autocast(precision, device):
        loss, output = called(batches[0])
    seen.append({"evaluated loss": loss, "evaluated output": output})
    return [{name: value.double() for name, value in one.items()} for one in seen]


def _stepped(
    fault: Fault | None, family: Family, _precision: str, device: str, *, double: bool
) -> list[dict[str, Tensor]]:
    """How far some steps of the optimizer moved each weight, from the start."""
    torch.compiler.reset()
    model = family.build(1).to(device, torch.float64 if double else None)
    start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    Stepping(family, model, compiler(fault, optimizer=True)[0])
    return [
        {
            name: (weight.detach() - start[name]).double()
            for name, weight in model.named_parameters()
        }
    ]


def _by_draws(fault: Fault, family: Family, precision: str, device: str) -> dict[str, Any]:
    """The gradient of one batch over many draws: how far means and variances are apart."""
    drawn = [_draws(one, family, precision, device) for one in (fault, None)]
    means, variances = [one.mean(0) for one in drawn], [float(one.var(0).sum()) for one in drawn]
    apart = float((means[0] - means[1]).square().sum())
    expected = sum(variances) / DRAWS
    ratio = variances[0] / variances[1]
    harmful = apart > 1.5 * expected or not 0.8 < ratio < 1.25
    return {"harmful": harmful, "effect": apart / expected, "variances": ratio, "where": "draws"}


def _draws(fault: Fault | None, family: Family, precision: str, device: str) -> Tensor:
    torch.compiler.reset()
    model = family.build(1).to(device)
    called, rows = _compiled(fault, model), []
    batch = to(family.batches(7, 1)[0], device)
    for number in range(DRAWS):
        model.zero_grad()
        torch.manual_seed(number if fault else DRAWS + number)
        with autocast(precision, device):
            loss = called(batch)[0]
        loss.backward()
        rows.append(torch.cat([one.flatten() for one in gradients(model).values()]).double())
    return torch.stack(rows)


def by_runs(fault: Fault, family: Family, precision: str, device: str) -> dict[str, Any]:
    """Held-out losses of full runs with the fault and without, and whether they differ."""
    torch.compiler.reset()
    runs = Runs(family, precision, device, functools.partial(_compiled, fault))
    faulty = [runs.metrics(seed) for seed in SEEDS]
    eager = [_eager(family, precision, device, seed) for seed in SEEDS]
    names = ("reported", "of its weights")
    compared = [_differ([one[i] for one in faulty], [one[1] for one in eager]) for i in range(2)]
    return {
        "harmful": any(compared),
        "faulty": faulty,
        "eager": [one[1] for one in eager],
        "differs": [name for name, one in zip(names, compared, strict=True) if one],
    }


def _differ(faulty: list[float], eager: list[float]) -> bool:
    differences = [one - other for one, other in zip(faulty, eager, strict=True)]
    mean = statistics.fmean(differences)
    if not math.isfinite(mean):
        return True
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return abs(mean) > max(MARGIN * statistics.fmean(eager), 3 * error)


@functools.cache
def _eager(family: Family, precision: str, device: str, seed: int) -> tuple[float, float]:
    return Runs(family, precision, device, None).metrics(seed)
