"""Simulated equivalence checks: what a job would have recorded, and a table of faults.

A check is made where nothing but the compiler differs. It catches an arm that loses anything with
the chance ``1 - rho``, at the first and the last weights alike, and fails a sound one by mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.decision.truth import Arm
from compilegate.domain.faults import FaultClass, FaultTable

FALSE_ALARMS = 0.01
DIGEST = "5" * 12
JOBS = {"framework": "pytorch 2.13", "device": "cuda 9.0", "precision": "bf16"}
BOUND = 30.0
PARTS = ("gradients.own", "gradients.single")
# Errors over eager's, of sound compilations and of faults.
SOUND, FAULTY = 1.1, 1000.0
COMPILER = {"compiler": "torch_compile"}


@dataclass(frozen=True)
class Screening:
    """A table with ``missed`` of ``faults``, and how well faults are caught in truth.

    ``rho`` is the chance that a faulty arm passes; None: exactly the table's bound. ``late``:
    faults show at the last weights alone.
    """

    faults: int = 60
    missed: int = 0
    rho: float | None = None
    late: bool = False

    @property
    def bound(self) -> float:
        """Upper 95 % Clopper-Pearson bound of the faults that are missed."""
        return float(beta.ppf(0.95, self.missed + 1, self.faults - self.missed))

    @property
    def table(self) -> FaultTable:
        """As evidence has it."""
        tried = FaultClass(**JOBS, faults=self.faults, missed=self.missed, date="2026-11-26")
        bounds = {f"{tried.kind_of_device}.{part}": BOUND for part in PARTS}
        return FaultTable(DIGEST, bounds, classes=(tried,))

    def catches(self, arm: Arm, rng: np.random.Generator) -> bool:
        """Whether the check of the arm fails; drawn once for all its jobs."""
        passes = self.bound if self.rho is None else self.rho
        return bool(rng.random() < (1 - passes if arm.loss > 0 else FALSE_ALARMS))

    def document(self, weights: str, *, caught: bool) -> dict[str, Any]:
        """What a job records of its check."""
        shows = caught and not (self.late and weights == "first")
        parts = [
            {"part": part, "arithmetic": arithmetic, "compared": 100, "where": "layer.weight",
             "ratio": FAULTY if shows else SOUND}
            for part, arithmetic in (name.split(".") for name in PARTS)
        ]  # fmt: skip
        own = {"schema": 1, "check": DIGEST, "weights": weights, "class": JOBS}
        return {**own, "parts": parts, "unseen": []}
