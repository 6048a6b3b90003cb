"""Workloads at random: documents with faults, sound ones of every kind, ones to plan."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from compilegate.domain.compilers import MODES, NAMES
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import (
    APPROVALS,
    DISTRIBUTIONS,
    FAMILIES,
    FRAMEWORKS,
    LOADERS,
    ON_STALE,
    PADDINGS,
    PRECISIONS,
    QUALITY_RUNS,
    SCALINGS,
    Candidate,
    Profile,
    Schedule,
    Workload,
)
from compilegate.facts import load_facts
from tests.domain.workload_builder import (
    ARTICLE,
    COMPILE,
    MANAGED,
    PAIR,
    PYTORCH_XLA,
    SOUND,
    TENSORFLOW,
    TRCOMP,
    XLA,
    change,
)
from tests.fuzzing import BROKEN, at_most, places

FULL: dict[str, Any] = {
    "schema": 1,
    "name": "bert-docs",
    "owner": "ml-platform",
    "framework": {
        "name": "huggingface-pytorch", "version": "1.13.1", "transformers": "4.26.0",
        "python": "py39",
    },
    "model": {"family": "transformer", "name": "bert-base"},
    "training": {
        "source_dir": "training", "entry_point": "train.py", "instance_type": "ml.g5.12xlarge",
        "instance_count": 2, "distribution": "torch_distributed", "precision": "fp16",
        "batch_size": 32, "learning_rate": 5e-5, "hyperparameters": {"epochs": 3, "warmup": 0.1},
        "inputs": {"train": "s3://bucket/train/", "validation": "data/validation"},
        "max_runtime_hours": 12, "volume_gb": 200, "environment": {"NCCL_DEBUG": "WARN"},
        "spot": True, "max_wait_hours": 24, "fallback_instances": ["ml.g5.24xlarge"],
        "instance_groups": [
            {"name": "gpu", "instance_type": "ml.g5.12xlarge", "instance_count": 1}
        ],
    },
    "shapes": {"static": True, "padding": "max_length", "drop_last": True},
    "schedule": {
        "runs_per_week": 3, "run_hours": 6.0, "cron": "cron(0 3 ? * MON *)", "max_wait_hours": 8,
        "timezone": "Europe/Berlin",
    },
    "profile": {
        "gpu_utilization": 0.9, "data_wait_fraction": 0.05, "communication_fraction": 0.1,
        "peak_memory_gib": 12.5, "compile_seconds": 40, "compile_seconds_cold": 90,
    },
    "quality": {
        "metric": "eval_accuracy", "goal": "maximize", "margin": 0.005,
        "history": [0.912, 0.914, 0.913, 0.9135, 0.9125],
    },
    "policy": {
        "min_mean_speedup": 1.2, "min_proven_speedup": 1.1, "alpha": 0.05, "quality_runs": "hybrid",
        "max_quality_runs": 36, "probation_runs": 12, "max_trial_usd": 5000,
        "on_stale": "fall_back", "cooldown_days": 14, "hold_models": True,
        "approval": "required",
    },
    "candidates": [
        {"name": "compile", "compiler": "torch_compile", "compile_mode": "max-autotune"},
        {"name": "b48", "compiler": "torch_compile", "batch_size": 48,
         "learning_rate_scaling": "linear"},
        {"name": "managed", "compiler": "sagemaker_training_compiler",
         "framework": {"name": "pytorch", "version": "1.13.1"}, "distribution": "pytorchxla",
         "entry_point": "train_xla.py", "hyperparameters": {"optim": "adamw_torch_xla"}},
        {"name": "p4d", "instance_type": "ml.p4d.24xlarge", "instance_count": 1},
    ],
    "tags": {"cost-centre": "4711"},
    "facts": {
        "prices": {"ml.g5.12xlarge": 7.09},
        "images": [
            {"framework": "pytorch", "version": "2.6.0",
             "uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"}
        ],
    },
}  # fmt: skip
WRONG = [
    *BROKEN, 1, 5e-324, " ", "no", "..", "/", "s3://", "sagemaker_program", [None], {"": 1},
    {"a": {"b": 1}}, {1: 2},
]  # fmt: skip
WORDS = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)


@st.composite
def faulty(draw: st.DrawFn) -> Any:
    """A sound document with one to three faults."""
    document = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(places(document)))
        target: Any = document
        for key in parents:
            target = target[key]
        how = draw(st.sampled_from(["drop", "rename", "set", "text", "add", "copy"]))
        if how == "drop":
            del target[last]
        elif how == "rename" and isinstance(target, dict):
            target[draw(WORDS)] = target.pop(last)
        elif how == "copy":
            target[last] = copy.deepcopy(draw(st.sampled_from(list(FULL.values()))))
        elif how == "add" and isinstance(target[last], dict):
            target[last][draw(WORDS)] = draw(st.sampled_from(WRONG))
        else:
            target[last] = copy.deepcopy(draw(WORDS if how == "text" else st.sampled_from(WRONG)))
    return document


FACTS = load_facts()
_FRAMEWORK_ROWS = [
    {"name": row.framework, "version": row.version,
     **({"transformers": row.transformers} if row.transformers else {}),
     **({"python": row.python} if row.python else {})}
    for row in (*FACTS.images, *FACTS.managed.images)
    if row.transformers is None or row.framework.startswith("huggingface-")
]  # fmt: skip


def _mostly(usual: Any, *others: Any) -> Any:
    """One of them, the usual one three times in four: else hardly any document gets a plan."""
    return st.sampled_from([*[usual] * 3 * len(others), *others])


_USUAL = {"name": "pytorch", "version": "2.6.0"}
frameworks = _mostly(
    _USUAL, *_FRAMEWORK_ROWS,
    *({"name": name, "version": version} for name in FRAMEWORKS for version in ("2.1", "9.9")),
)  # fmt: skip
instances = _mostly("ml.g5.12xlarge", *FACTS.instances, "ml.z9.xlarge")
_count = _mostly(2, 1, 16, 1000)
_batch = _mostly(32, 1, 8, 48, 10**7)
_share = st.sampled_from([0.0, 1e-9, 0.05, 0.4, 0.5])
_plain = st.one_of(
    st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(), st.text(max_size=30), st.just("x" * 700),
)  # fmt: skip
_hyperparameters = st.dictionaries(
    st.sampled_from([
        "epochs", "steps", "optim", "mp_parameters", "rules", "note", "sagemaker_mpi_enabled",
        "sagemaker_training_compiler_enabled", "sagemaker_training_compiler_debug_mode",
    ]),
    _plain, max_size=3,
)  # fmt: skip


def _some(keys: dict[str, Any]) -> Any:
    return st.fixed_dictionaries({}, optional=keys)


@st.composite
def sound(draw: st.DrawFn) -> dict[str, Any]:
    """A document that is written as it should be, of any kind of workload."""
    hours = draw(_mostly(6.0, 0.001, 0.25, 672.0))
    document: dict[str, Any] = {
        "schema": 1,
        "name": draw(st.sampled_from(["a", "bert-docs", "n" * 32])),
        "framework": draw(frameworks),
        "model": {"family": draw(_mostly(*FAMILIES)), "name": "bert-base-uncased"},
        "training": {
            "source_dir": "training", "entry_point": "train.py",
            "instance_type": draw(instances), "instance_count": draw(_count),
            "distribution": draw(_mostly("torch_distributed", *DISTRIBUTIONS)),
            "precision": draw(_mostly("fp16", *PRECISIONS)), "batch_size": draw(_batch),
            "learning_rate": draw(_mostly(5e-5, 1e-300, 0.1, 1000.0)),
            "hyperparameters": draw(_hyperparameters),
            "inputs": draw(st.sampled_from([{}, {"train": "s3://bucket/x"}, {"c" * 64: "data"}])),
            "max_runtime_hours": 672.0 if draw(st.booleans()) else hours,
            "spot": draw(st.booleans()),
        },
        "shapes": {
            "static": draw(_mostly(True, False)), "padding": draw(_mostly(*PADDINGS)),
            "drop_last": draw(st.booleans()), "loader": draw(st.sampled_from(LOADERS)),
        },
        "schedule": {
            "runs_per_week": draw(_mostly(3, 1e-9, 0.1, 1e5)), "run_hours": hours
        },
        "quality": {
            "metric": draw(st.sampled_from(["eval_accuracy", "loss", "m" * 200, "mAP@0.5:0.95"])),
            "goal": "minimize", "margin": draw(_mostly(0.005, 1e-300, 1e14)),
            "history": draw(
                _mostly([0.912, 0.913, 0.9125, 0.9128, 0.9131], [], [0.0, 1e14, -1e-9], [1.0] * 9)
            ),
        },
    }  # fmt: skip
    optional = _some({
        "owner": st.just("ml"),
        "tags": st.sampled_from([{}, {"cost-centre": "1"}, {f"t{i}": "v" for i in range(44)}]),
        "profile": _some({
            "gpu_utilization": _share, "data_wait_fraction": _share,
            "communication_fraction": _share, "peak_memory_gib": st.sampled_from([1e-9, 20.0, 1e5]),
            "compile_seconds": st.sampled_from([0.0, 30.0]),
            "compile_seconds_cold": st.sampled_from([30.0, 1e6]),
        }),
        "policy": _some({
            "min_mean_speedup": _mostly(1.2, 1e14),
            "min_proven_speedup": _mostly(1.1, 1.0, 1.2),
            "alpha": _mostly(0.05, 1e-6, 0.5),
            "quality_runs": st.sampled_from(QUALITY_RUNS),
            "max_quality_runs": _mostly(36, 2, 10_000),
            "max_trial_usd": _mostly(5000.0, 1e-9, 1e8),
            "on_stale": st.sampled_from(ON_STALE),
            "cooldown_days": _mostly(14.0, 0.0, 3650.0),
            "hold_models": st.booleans(),
            "approval": st.sampled_from(APPROVALS),
        }),
        "candidates": st.lists(_candidates, max_size=4, unique_by=lambda one: one["name"]),
    })  # fmt: skip
    return document | draw(optional)


_candidates = st.builds(
    lambda name, changes: {"name": name, **changes},
    st.sampled_from(["a", "b", "c", "d", "n" * 32]),
    _some({
        "compiler": _mostly("torch_compile", *NAMES), "batch_size": _batch,
        "learning_rate_scaling": st.sampled_from(SCALINGS), "instance_type": instances,
        "instance_count": _count, "precision": st.sampled_from(PRECISIONS),
        "distribution": st.sampled_from(DISTRIBUTIONS),
        "compile_mode": st.sampled_from(MODES), "framework": frameworks,
        "entry_point": st.just("other.py"), "hyperparameters": _hyperparameters,
    }),
)  # fmt: skip


def _parsed(document: dict[str, Any]) -> Workload | None:
    try:
        return parse_workload(document)
    except InvalidInputError:
        return None


workloads: Any = sound().map(_parsed).filter(lambda workload: workload is not None)
quick = at_most(80)

# Of these most candidates may be tried.
mostly_sound = st.builds(
    lambda base, chosen, cap, schedule, history, profile: change(
        base,
        candidates=tuple(
            replace(one, name=f"c{index}") for index, one in enumerate(chosen)
        ),
        policy__max_trial_usd=cap, schedule=schedule, quality__history=history, profile=profile,
    ),
    st.sampled_from([SOUND, ARTICLE, TRCOMP, TENSORFLOW, PYTORCH_XLA]),
    st.lists(
        st.sampled_from(
            [COMPILE, MANAGED, XLA, PAIR, Candidate(name="bf16", precision="bf16")]
        ).flatmap(
            lambda one: st.builds(
                replace, st.just(one), batch_size=st.none() | st.integers(8, 128),
                instance_type=st.sampled_from([None, None, "ml.p4d.24xlarge", "ml.g6e.48xlarge"]),
                instance_count=st.sampled_from([None, None, 2]),
            )
        ),
        max_size=3,
    ),
    st.sampled_from([10.0, 5000.0, 1e7]),
    st.builds(Schedule, st.floats(0.05, 1000), st.floats(0.3, 48)),
    st.lists(st.floats(0.9, 0.92), max_size=7).map(tuple),
    st.just(Profile())
    | st.builds(Profile, st.floats(0.5, 1), st.floats(0, 0.3), st.floats(0, 0.2)),
)  # fmt: skip
