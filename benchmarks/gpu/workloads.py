"""What is measured: the models, and for each the arms that run against the eager baseline.

Every workload is one of the training scripts as users run it, from its architecture (nothing is
downloaded) and with static shapes. An arm changes the baseline by what ``changes`` says, in the
judge's own words, so that its document is judged like any other.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.planning.arms import scaled_learning_rate

BASELINE = "baseline"
FULL_RUN_STEPS = 20_000  # of the baseline; compilation is paid once for so many
COMPILED = {"compiler": "torch_compile"}


@dataclass(frozen=True)
class Arm:
    """One way to train; ``batch_times`` is its batch over the baseline's."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    batch_times: int = 1
    quality: bool = False  # trained to the end as well
    quick: bool = False  # measured when time is short
    needs: tuple[str, ...] = ()


ARMS = (
    Arm(BASELINE, quality=True, quick=True),
    Arm("compile", COMPILED, quality=True, quick=True),
    Arm("batch", {}, batch_times=2),  # what the larger batch brings without a compiler
    Arm("compile-batch", COMPILED, batch_times=2, quality=True, quick=True),
    Arm("reduce-overhead", {**COMPILED, "compile_mode": "reduce-overhead"}),
    Arm("max-autotune", {**COMPILED, "compile_mode": "max-autotune"}),
    Arm("regional", {**COMPILED, "compile_regions": "auto"}),
    Arm("optimizer", {**COMPILED, "compile_optimizer": True}),
    Arm(
        "compile-fp8",
        {**COMPILED, "precision": "fp8"},
        quality=True,
        quick=True,
        needs=("torchao",),
    ),
)


@dataclass(frozen=True)
class Workload:
    """A training script with its settings; ``margin`` is in the metric's own unit."""

    name: str
    program: str
    data: str
    settings: Mapping[str, Any]
    metric: str = "eval_loss"
    goal: str = "minimize"
    margin: float = 0.02
    quality_steps: int | None = None  # None: only its speed is measured
    needs: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = ARMS

    def hyperparameters(self, arm: Arm, steps: int) -> dict[str, Any]:
        """What the script is started with; a larger batch trains on as many samples in all."""
        batch = self.settings["batch_size"] * arm.batch_times
        rate = scaled_learning_rate(self.settings["learning_rate"], arm.batch_times, "sqrt")
        return {
            "compiler": "none",
            **self.settings,
            **arm.changes,
            "batch_size": batch,
            "learning_rate": rate,
            "steps": max(1, steps // arm.batch_times),
        }

    def overrides(self, arm: Arm) -> dict[str, Any]:
        """The arm's change as the judge reads it."""
        own = {"compiler", "compile_mode", "precision"}
        changes: dict[str, Any] = {key: v for key, v in arm.changes.items() if key in own}
        others = {key: v for key, v in arm.changes.items() if key not in own}
        if arm.batch_times > 1:
            changes["batch_size"] = self.settings["batch_size"] * arm.batch_times
        return {**changes, "hyperparameters": others} if others else changes


BERT = {
    "model": "bert", "padding": "max_length", "precision": "bf16", "learning_rate": 5e-5,
}  # fmt: skip
GPT2 = {"model": "gpt2", "precision": "bf16", "learning_rate": 6e-4}
UNET = {"model": "stable_diffusion", "precision": "bf16", "learning_rate": 1e-4}
WITHOUT_SCALER = tuple(a for a in ARMS if a.name not in ("optimizer", "compile-fp8"))
TRANSFORMERS = ("transformers", "tokenizers")


def _bert(name: str, length: int, batch: int, **others: Any) -> Workload:
    settings = {**BERT, "max_length": length, "batch_size": batch, **others}
    return Workload(
        name, "text_classification.py", "docstrings", settings, metric="eval_accuracy",
        goal="maximize", margin=0.02, needs=TRANSFORMERS,
    )  # fmt: skip


def _decoder(name: str, block: int, batch: int, **others: Any) -> Workload:
    settings = {**GPT2, "block": block, "batch_size": batch, **others}
    needs = () if settings["model"] == "tiny" else TRANSFORMERS
    return Workload(name, "causal_lm.py", "docstrings", settings, needs=needs)


WORKLOADS = (
    dataclasses.replace(_bert("bert-128", 128, 32), quality_steps=400),
    _bert("bert-512", 512, 16),
    dataclasses.replace(
        _bert("bert-128-fp16", 128, 32, precision="fp16"), arms=WITHOUT_SCALER
    ),
    dataclasses.replace(_decoder("gpt2-512", 512, 24), quality_steps=200),
    _decoder("gpt2-1024", 1024, 12),
    Workload(
        "unet-512px", "diffusion.py", "pictures", {**UNET, "batch_size": 8}, margin=0.005,
        quality_steps=200, needs=("diffusers", "PIL"),
    ),
    # GPT-2's shape written out in plain PyTorch, on bytes: runs where nothing but torch is.
    _decoder("decoder-1024", 1024, 12, model="tiny", width=768, layers=12, heads=12),
)  # fmt: skip

TINY_LM = {
    "model": "tiny", "width": 16, "layers": 1, "heads": 2, "block": 16, "batch_size": 2,
    "learning_rate": 6e-3, "eval_blocks": 8,
}  # fmt: skip
TINY = (
    Workload(
        "tiny-lm", "causal_lm.py", "docstrings", TINY_LM, margin=0.5, quality_steps=20,
        arms=(
            Arm(BASELINE, quality=True, quick=True),
            Arm("compile", COMPILED, quality=True, quick=True),
        ),
    ),
)  # fmt: skip


def missing(needs: tuple[str, ...]) -> str | None:
    """Why something cannot be measured here, None where all that it needs is installed."""
    lacking = [name for name in needs if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else None
