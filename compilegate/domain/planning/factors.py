"""Which factors a candidate changes: one can be told apart from chance, several are a bundle."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.compilers import compiler_named
from compilegate.domain.workload.model import BASELINE, Candidate, Workload

# learning_rate_scaling follows the batch, and compile_mode is part of the compiler's treatment.
FACTORS = {
    "compiler": ("compiler",),
    "batch size": ("batch_size",),
    "precision": ("precision",),
    "instances": ("instance_type", "instance_count"),
    "distribution": ("distribution",),
    "framework": (),
    "script": ("entry_point",),
    "hyperparameters": ("hyperparameters",),
}


def changed_factors(
    candidate: Candidate, workload: Workload, *, same_global_batch: bool, same_framework: bool
) -> tuple[str, ...]:
    """The factors in which a candidate differs from the workload, in the order of ``FACTORS``.

    The batch that trains the model is the one of all devices: other machines change it too,
    unless the batch of a device makes up for that (``same_global_batch``). A framework may be
    named more loosely than the workload's and be the same (``same_framework``).
    """
    found = {
        factor: any(_differs(candidate, workload, key) for key in keys)
        for factor, keys in FACTORS.items()
    }
    found["batch size"] = not same_global_batch
    found["framework"] = not same_framework
    return tuple(factor for factor, changed in found.items() if changed)


def label(factors: Sequence[str], name: str = "") -> str:
    """``one factor: compiler`` or ``bundle of compiler and batch size``."""
    if not factors:
        return "as it runs today" if name == BASELINE else "changes nothing"
    if len(factors) == 1:
        return f"one factor: {factors[0]}"
    return f"bundle of {', '.join(factors[:-1])} and {factors[-1]}"


def _differs(candidate: Candidate, workload: Workload, key: str) -> bool:
    value = getattr(candidate, key)
    if value is None:
        return False
    if key == "compiler":
        return bool(value != "none")
    compiler = compiler_named(candidate.compiler)
    launching = None if compiler is None else compiler.launching
    if key == "distribution" and launching and value == launching.distribution:
        return False  # exists in that compiler's images only, so it cannot be varied apart
    now = getattr(workload.training, key)
    if key == "hyperparameters":
        return {**now, **value} != dict(now)
    return bool(value != now)
