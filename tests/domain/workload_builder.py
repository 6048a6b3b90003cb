"""An eligible workload without reasons, and ways to change one thing of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from compilegate.domain.eligibility.check import Eligibility, check_eligibility
from compilegate.domain.workload.model import (
    Candidate,
    FactOverrides,
    Framework,
    Model,
    Schedule,
    Shapes,
    Training,
    Workload,
)
from compilegate.domain.workload.quality import Quality
from compilegate.facts import load_facts

COMPILE = Candidate(name="compile", compiler="torch_compile")
MANAGED = Candidate(name="managed", compiler="sagemaker_training_compiler")
XLA = dataclasses.replace(MANAGED, distribution="pytorchxla")
# On the newest versions that have a twin without the compiler.
PAIR = dataclasses.replace(XLA, framework=Framework("pytorch", "1.13.1", None, "py39"))

SOUND = Workload(
    name="bert-docs",
    framework=Framework("pytorch", "2.13.0"),
    model=Model("transformer", "bert-base-cased"),
    training=Training(
        source_dir="training", entry_point="train.py", instance_type="ml.g5.48xlarge",
        instance_count=1, distribution="torch_distributed", precision="bf16", batch_size=32,
        learning_rate=5e-5, max_runtime_hours=12,
    ),
    shapes=Shapes(static=True),
    schedule=Schedule(runs_per_week=3, run_hours=6),
    quality=Quality("eval_accuracy", "maximize", 0.005, (0.912, 0.913, 0.912, 0.914, 0.911)),
    candidates=(COMPILE,),
)  # fmt: skip
XGBOOST = dataclasses.replace(
    SOUND,
    framework=Framework("xgboost", "1.7-1"),
    model=Model("gbt", "churn"),
    training=dataclasses.replace(
        SOUND.training, instance_type="ml.m6i.12xlarge", distribution="none", precision="fp32"
    ),
    candidates=(),
)
# What the vendor's own example asks for; its SDK refuses it.
ARTICLE = dataclasses.replace(
    SOUND,
    framework=Framework("huggingface-pytorch", "2.1.0", "4.36.0", "py310"),
    training=dataclasses.replace(SOUND.training, instance_count=8, distribution="pytorchddp"),
    candidates=(MANAGED, COMPILE),
)
# One GPU, so that nothing but the versions is in question.
TRCOMP = dataclasses.replace(
    SOUND,
    framework=Framework("huggingface-pytorch", "1.10.2", "4.17.0", "py38"),
    training=dataclasses.replace(
        SOUND.training, instance_type="ml.g5.2xlarge", distribution="none", precision="fp16"
    ),
    candidates=(MANAGED,),
)
TENSORFLOW = dataclasses.replace(TRCOMP, framework=Framework("tensorflow", "2.11.0", None, "py39"))
PYTORCH_XLA = dataclasses.replace(
    SOUND,
    framework=Framework("pytorch", "1.13.1", None, "py39"),
    training=dataclasses.replace(SOUND.training, precision="fp16"),
    candidates=(XLA,),
)


def change(workload: Workload, **changes: Any) -> Workload:
    """A copy in which ``part__key=value`` replaces a key of a part, ``part=value`` the part."""
    for path, value in changes.items():
        part, _, key = path.partition("__")
        new = dataclasses.replace(getattr(workload, part), **{key: value}) if key else value
        workload = dataclasses.replace(workload, **{part: new})
    return workload


def check(
    workload: Workload, prices: Mapping[str, float] | None = None, **options: Any
) -> Eligibility:
    """Eligibility by the shipped facts, or with other prices."""
    facts = load_facts().overridden(FactOverrides(prices or {}))
    return check_eligibility(workload, facts, **options)


def severities(eligibility: Eligibility, index: int = 0) -> dict[str, str]:
    """Code to severity of one candidate's reasons."""
    return {r.code: str(r.severity) for r in eligibility.candidates[index].reasons}
