"""Workload files: copies of the shipped ones, the corpus of wrong ones, variants from a seed."""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.frozen.entries import working_folder

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((Path(__file__).parent / "data" / "workloads").glob("*.yaml"))
CORPUS = sorted((ROOT / "tests" / "corpus").glob("*.yaml"))
INSTANCES = (
    "ml.g5.xlarge", "ml.g5.2xlarge", "ml.g5.12xlarge", "ml.g5.48xlarge", "ml.g4dn.xlarge",
    "ml.g4dn.12xlarge", "ml.p3dn.24xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.p5en.48xlarge",
    "ml.g6.12xlarge", "ml.g6e.48xlarge", "ml.m6i.12xlarge", "ml.m5.xlarge", "ml.p3.2xlarge",
    "ml.z9.xlarge",
)  # fmt: skip
FRAMEWORKS = (
    ("pytorch", "1.9.0", None, "py38"), ("pytorch", "1.13.1", None, "py39"),
    ("pytorch", "2.0.1", None, "py310"), ("pytorch", "2.6.0", None, None),
    ("pytorch", "2.9.0", None, None), ("pytorch", "2.13.0", None, None),
    ("pytorch", "9.9", None, None), ("huggingface-pytorch", "1.10.2", "4.17.0", "py38"),
    ("huggingface-pytorch", "1.11.0", "4.21.1", "py38"),
    ("huggingface-pytorch", "1.13.1", "4.26.0", "py39"),
    ("huggingface-pytorch", "2.1.0", "4.36.0", "py310"),
    ("huggingface-pytorch", "2.8.0", "4.56.2", None),
    ("huggingface-tensorflow", "2.6.3", "4.17.0", "py38"), ("tensorflow", "2.9.2", None, "py39"),
    ("tensorflow", "2.19.0", None, None), ("xgboost", "1.7-1", None, None),
    ("sklearn", "1.4-2", None, None), ("other", "1.0", None, None),
)  # fmt: skip
SINGLE = ("ml.g5.xlarge", "ml.g5.2xlarge", "ml.g4dn.xlarge")
USUAL_FRAMEWORKS = FRAMEWORKS[3:6] + FRAMEWORKS[9:12]
LAUNCHERS = ("none", "pytorchddp", "torch_distributed", "pytorchxla", "smddp", "smp")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
FAMILIES = ("transformer", "diffusion", "vision", "recsys", "gbt", "classical", "custom")
COMPILERS = ("none", "torch_compile", "torch_compile", "sagemaker_training_compiler")
SCRIPTS = (
    "train.py",
    "other.py",
    "causal_lm.py",
    "diffusion.py",
    "tabular.py",
    "text_classification.py",
)
SOUND: dict[str, Any] = {
    "schema": 1,
    "name": "bert-docs",
    "framework": {"name": "pytorch", "version": "2.13.0"},
    "model": {"family": "transformer", "name": "bert-base"},
    "training": {
        "source_dir": "training", "entry_point": "train.py", "instance_type": "ml.g5.xlarge",
        "instance_count": 1, "distribution": "none", "precision": "fp32", "batch_size": 32,
        "learning_rate": 5e-5, "inputs": {"train": "s3://bucket/train/"}, "max_runtime_hours": 12,
    },
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 3, "run_hours": 6.0},
    "quality": {"metric": "eval_accuracy", "goal": "maximize", "margin": 0.005},
}  # fmt: skip


def write_project(folder: Path) -> None:
    """The source folder and the data that the files name."""
    (folder / "training").mkdir(parents=True, exist_ok=True)
    for script in SCRIPTS:
        (folder / "training" / script).write_text("print('training')\n")
    for data in ("docstrings", "table"):
        for channel in ("train", "validation"):
            place = folder / "workloads" / "data" / data / channel
            place.mkdir(parents=True, exist_ok=True)
            (place / "rows.csv").write_text("1,2\n")
    (folder / "training" / "compilegate_runtime").mkdir(exist_ok=True)
    (folder / "training" / "compilegate_runtime" / "__init__.py").write_text("")
    (folder / "training" / "run.sh").write_text("python train.py\n")


def in_project(text: bytes, run: Callable[[], Any]) -> Any:
    """What ``run`` answers in the folder of a project whose workload file is ``w.yaml``."""
    with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder)):
        write_project(Path(folder))
        Path("w.yaml").write_bytes(text)
        return run()


def read_in_project(text: bytes, run: Callable[[], Any]) -> Any:
    """The same of a command that only reads; all of them share one folder."""
    with working_folder(_project()):
        Path("w.yaml").write_bytes(text)
        return run()


@cache
def _project() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="compilegate-project-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_project(folder)
    return folder


def text_of(document: dict[str, Any]) -> str:
    """A workload document as a file has it."""
    return yaml.dump(document, Dumper=DUMPER, sort_keys=False)


def variant(number: int) -> dict[str, Any]:
    """The variant of that number: sound as a file, of any kind of workload."""
    rng = random.Random(f"workload {number}")
    usual = rng.random() < 0.6  # nothing unusual about its versions and machines
    document = {
        **SOUND,
        "framework": _framework(rng, usual),
        "model": {"family": _mostly(rng, *FAMILIES), "name": rng.choice(["bert-base", "gpt2"])},
        "training": _training(rng, usual),
        "shapes": {
            "static": _mostly(rng, True, False), "drop_last": _mostly(rng, True, False),
            "padding": _mostly(rng, "max_length", "longest", "none"),
            "loader": _mostly(rng, "standard", "custom"),
        },
        "schedule": _schedule(rng),
        "quality": _quality(rng),
    }  # fmt: skip
    if rng.random() < 0.5:
        document["profile"] = _profile(rng)
    if rng.random() < 0.6:
        document["policy"] = _policy(rng)
    if rng.random() < 0.7:
        count = rng.choice([1, 1, 2, 3])
        document["candidates"] = [_candidate(rng, f"c{n}", usual) for n in range(count)]
    if rng.random() < 0.2:
        document |= {"owner": "ml", "tags": {"cost-centre": "4711"}}
    if rng.random() < 0.15:
        document["facts"] = _facts(document)
    return document


def _framework(rng: random.Random, usual: bool) -> dict[str, str]:
    names = ("name", "version", "transformers", "python")
    row = rng.choice(USUAL_FRAMEWORKS if usual else FRAMEWORKS)
    return {name: value for name, value in zip(names, row, strict=True) if value}


def _training(rng: random.Random, usual: bool) -> dict[str, Any]:
    instance = rng.choice(INSTANCES[:6] if usual else INSTANCES)
    launcher = "none" if instance in SINGLE else "torch_distributed"
    training: dict[str, Any] = {
        **SOUND["training"],
        "instance_type": instance,
        "instance_count": 1 if usual and launcher == "none" else _mostly(rng, 1, 2, 8),
        "distribution": launcher if usual else rng.choice(LAUNCHERS),
        "precision": _mostly(rng, "fp16", *PRECISIONS),
        "batch_size": rng.choice([8, 32, 32, 48, 256]),
    }
    hyperparameters = {
        "epochs": 3, "steps": 2000, "model": "bert", "torch_compile": True, "note": "plain",
        "mp_parameters": '{"partitions": 2}', "gradient_accumulation_steps": 4,
    }  # fmt: skip
    if rng.random() < 0.5:
        chosen = rng.sample(sorted(hyperparameters), rng.choice([1, 2]))
        training["hyperparameters"] = {key: hyperparameters[key] for key in chosen}
    if rng.random() < 0.2:
        training |= {"spot": True, "max_wait_hours": rng.choice([12, 24])}
    if rng.random() < 0.15:
        training["environment"] = {"NCCL_DEBUG": "WARN"}
    if rng.random() < 0.1:
        training["fallback_instances"] = ["ml.g5.24xlarge"]
    if rng.random() < 0.05:
        training["instance_groups"] = [
            {"name": "gpu", "instance_type": training["instance_type"], "instance_count": 1}
        ]
    return training


def _schedule(rng: random.Random) -> dict[str, Any]:
    schedule: dict[str, Any] = {
        "runs_per_week": _mostly(rng, 3, 0.2, 40, 2800),
        "run_hours": _mostly(rng, 6.0, 0.01, 0.5, 11.9),
    }
    if rng.random() < 0.3:
        schedule["cron"] = rng.choice(["cron(0 3 ? * MON *)", "rate(1 day)"])
    return schedule


def _quality(rng: random.Random) -> dict[str, Any]:
    history = rng.choice([[], [0.912, 0.914, 0.913, 0.9135, 0.9125], [0.9, 0.95, 0.85]])
    margin = _mostly(rng, 0.005, 0.05, 0.0001)
    return {**SOUND["quality"], "margin": margin, **({"history": history} if history else {})}


def _profile(rng: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "gpu_utilization": rng.choice([0.2, 0.6, 0.95]),
        "data_wait_fraction": rng.choice([0.0, 0.05, 0.4]),
        "communication_fraction": rng.choice([0.0, 0.1, 0.5]),
        "peak_memory_gib": rng.choice([4.0, 14.0, 23.0, 60.0]),
        "compile_seconds": rng.choice([0.0, 20.0]),
        "compile_seconds_cold": rng.choice([40.0, 2000.0]),
    }
    return {key: value for key, value in values.items() if rng.random() < 0.6}


def _policy(rng: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "min_mean_speedup": rng.choice([1.1, 1.2, 1.6]),
        "min_proven_speedup": rng.choice([1.0, 1.05]),
        "alpha": rng.choice([0.01, 0.1]), "max_quality_runs": rng.choice([2, 6, 36]),
        "quality_runs": rng.choice(["shadow", "canary", "hybrid"]), "probation_runs": 20,
        "max_trial_usd": rng.choice([5, 300, 5000, 100_000]), "hold_models": False,
        "approval": "required", "on_stale": "keep",
    }  # fmt: skip
    return {key: value for key, value in values.items() if rng.random() < 0.4}


def _candidate(rng: random.Random, name: str, usual: bool) -> dict[str, Any]:
    changes: dict[str, Any] = {"compiler": rng.choice(COMPILERS[1:3] if usual else COMPILERS)}
    others: dict[str, Any] = {
        "batch_size": rng.choice([16, 48, 64, 1024]), "compile_mode": "max-autotune",
        "instance_type": rng.choice(INSTANCES), "instance_count": rng.choice([1, 4]),
        "precision": rng.choice(PRECISIONS), "distribution": rng.choice(LAUNCHERS),
        "framework": _framework(rng, False), "entry_point": "other.py",
        "hyperparameters": {"optim": "adamw_torch_xla"},
    }  # fmt: skip
    share = 0.1 if usual else 0.2
    changes |= {key: value for key, value in others.items() if rng.random() < share}
    if changes.get("batch_size", 0) > 256:
        changes["learning_rate_scaling"] = "linear"
    return {"name": name, **changes}


def _facts(document: dict[str, Any]) -> dict[str, Any]:
    framework = {key: document["framework"][key] for key in ("version",)}
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"
    return {
        "prices": {document["training"]["instance_type"]: 7.09},
        "images": [{"framework": document["framework"]["name"], **framework, "uri": uri}],
    }


def _mostly(rng: random.Random, usual: Any, *others: Any) -> Any:
    return usual if rng.random() < 0.75 else rng.choice(others)
