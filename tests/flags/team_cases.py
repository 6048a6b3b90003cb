"""Team jobs and the flags that they carry, read by our environment and by the SDK's."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance import cases as asked
from tests.conformance.cases import Case

GENERIC = "generic estimator"
SCRIPT = {
    "compiler": "torch_compile", "compile_mode": "max-autotune", "batch_size": 64,
    "learning_rate": 1e-4, "precision": "bf16", "hyperparameters": {"warmup": 0.1},
}  # fmt: skip
_PYTORCH = Case("pytorch", "2.8.0", python="py312", instance_type="ml.g5.12xlarge")
_HUGGINGFACE = Case(
    "huggingface-pytorch", "2.1.0", transformers="4.36.0", python="py310",
    distribution="torch_distributed", instance_type="ml.g5.12xlarge", instance_count=2,
)  # fmt: skip
_LAUNCHED = Case("pytorch", "2.3.0", python="py311", instance_type="ml.g5.12xlarge")
_BY_HAND: dict[Case, dict[str, Any]] = {
    _PYTORCH: SCRIPT,
    _HUGGINGFACE: {**SCRIPT, "instance_type": "ml.g5.48xlarge", "instance_count": 1},
    _LAUNCHED: {"compiler": "torch_compile", "distribution": "torch_distributed"},
}
CASES = tuple(_BY_HAND)
OVERRIDES = {case.id: overrides for case, overrides in _BY_HAND.items()}


def flag_text(overrides: dict[str, Any]) -> str:
    """The parameter of a promoted candidate."""
    flag = {
        "schema": 1, "enabled": True, "state": "permanent", "candidate": asked.ARM,
        "overrides": overrides, "decision_id": "d1", "since": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return json.dumps(flag)
