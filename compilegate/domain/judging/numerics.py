"""The numerical kill test: is compiled arithmetic about as far from the truth as eager's?

A speed job trains a few steps of a compiled arm three times from the same weights on the same
batches: compiled, eager, and eager in double precision (training/compilegate_runtime/numerics.py).
With e_C and e_E the relative errors of the gradient against the reference, and eps the precision
that the arm computes in, of every step

    r = e_C / max(e_E, eps)

A fixed bound on e_C alone would have artefacts: 1e-3 is a fault in fp32 and exact in bf16, and
grows with depth. Eager's own error is the yardstick, and the median over the steps stands for
them, so that neither one ill-conditioned batch nor an error that comes only after the first step
(a stale buffer) decides alone or is missed. A step without a finite error counts as infinite.

    suspicious   median r >= 10
    wrong        median r >= 10 and median e_C >= 0.25

10 is beyond every order of summation: PyTorch's own accuracy test of compilers allows 2 to 3 for
large tensors and 10 for the smallest (``torch._dynamo.utils.same``). TF32 beside exact fp32
alone gives a ratio of 1,000 at an error of 0.001, which trains as well as ever; so a ratio rejects
nothing unless a quarter of the gradient's own length is wrong, which no rounding to eight bits
makes of it but cancellation, and that hits eager alike. Both are judgement. The check rejects or
warns before full runs are paid for; it never promotes, and passing it means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.arithmetic import median
from compilegate.domain.judging.evidence import Arm

RATIO = 10.0
WRONG_ERROR = 0.25
LEAST_STEPS = 3
MOST_STEPS = 100
LARGEST_EPSILON = 0.25  # of fp8


@dataclass(frozen=True)
class Numerics:
    """Medians over the steps of one check; errors are relative to the gradient's length."""

    steps: int
    compiled_error: float
    eager_error: float
    ratio: float

    @property
    def suspicious(self) -> bool:
        """Whether compiled arithmetic is far less exact than eager's."""
        return self.ratio >= RATIO

    @property
    def wrong(self) -> bool:
        """Whether it is another gradient."""
        return self.suspicious and self.compiled_error >= WRONG_ERROR

    @property
    def words(self) -> str:
        """What was seen, for people."""
        off = "is not a finite number"
        if math.isfinite(self.compiled_error):
            off = f"is off by {self.compiled_error:.2g} of its length"
        return (
            f"the compiled gradient {off} over {self.steps} steps, the uncompiled one by "
            f"{self.eager_error:.2g}, both against double precision"
        )


def numerics_of(candidate: Arm) -> Numerics | None:
    """The last check of the candidate's speed jobs, None without one that can be read."""
    checks = [read_numerics(run.record.get("numerics")) for run in candidate.speed]
    return next((check for check in reversed(checks) if check is not None), None)


def read_numerics(document: object) -> Numerics | None:
    """A recorded check; None where none was made or anything of it is broken."""
    if not isinstance(document, Mapping) or document.get("checked") is not True:
        return None
    errors, epsilon = document.get("gradient_error"), _number(document.get("epsilon"))
    if not isinstance(errors, Mapping) or not 0 < epsilon <= LARGEST_EPSILON:
        return None
    compiled, eager = (_errors(errors.get(name)) for name in ("compiled", "eager"))
    # Without a finite error of eager's own the yardstick itself failed.
    if not compiled or len(compiled) != len(eager) or not all(map(math.isfinite, eager)):
        return None
    ratios = [ours / max(theirs, epsilon) for ours, theirs in zip(compiled, eager, strict=True)]
    return Numerics(len(compiled), median(compiled), median(eager), median(ratios))


def _errors(values: Any) -> list[float]:
    """Relative errors, infinite where a step has none; empty where they are no such list."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return []
    errors = [math.inf if value is None else _number(value) for value in values]
    sound = all(error >= 0 for error in errors)
    return errors if sound and LEAST_STEPS <= len(errors) <= MOST_STEPS else []


def _number(value: object) -> float:
    """The number, NaN for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
