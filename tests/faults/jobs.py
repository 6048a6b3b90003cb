"""A workload, and training jobs that leave, in figures, what their script would have left."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.archives import tarball

Document = dict[str, Any]
NAME = "bert-docs"
WORKLOAD: Document = {
    "schema": 1,
    "name": NAME,
    "owner": "ml-platform",
    "framework": {"name": "pytorch", "version": "2.13.0"},
    "model": {"family": "transformer", "name": "bert-base-cased"},
    "training": {
        "source_dir": "training", "entry_point": "train.py", "instance_type": "ml.g5.48xlarge",
        "instance_count": 1, "distribution": "torch_distributed", "precision": "bf16",
        "batch_size": 32, "learning_rate": 5e-5, "max_runtime_hours": 12,
    },
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 3, "run_hours": 6},
    "quality": {
        "metric": "eval_accuracy", "goal": "maximize", "margin": 0.005,
        "history": [0.912, 0.913, 0.912, 0.914, 0.911],
    },
    "policy": {"quality_runs": "shadow"},
    "candidates": [{"name": "compile", "compiler": "torch_compile"}],
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A job that a machine starts; ``number`` counts the jobs of its cloud from 0.

    Two are equal that leave the same.
    """

    number: int
    stage: str
    arms: tuple[str, ...]
    seed: int
    blocks: tuple[int, ...]
    request: Document = field(compare=False)

    @property
    def arm(self) -> str:
        """The arm of a full run."""
        return self.arms[0]


@dataclass(frozen=True)
class Candidate:
    """What the candidate really is: times as fast as the baseline, and what its metric loses."""

    speedup: float
    loss: float
    metric: str
    goal: str


def job_of(request: Document, number: int) -> Job:
    """The job that a CreateTrainingJob request asks for."""
    values = request["HyperParameters"]
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    blocks = _blocks(values)
    arms = tuple(_decoded(text) for key, text in sorted(values.items()) if key.startswith("arm_"))
    return Job(
        number=number, stage=tags["compilegate:stage"],
        arms=arms if blocks else (tags["compilegate:arm"],),
        seed=int(json.loads(values.get("seed", "0"))), blocks=blocks, request=request,
    )  # fmt: skip


def output_of(job: Job, candidate: Candidate) -> bytes:
    """The output archive."""
    files: Document = {}
    if not job.blocks:
        gain = 1.0 if job.arm == "baseline" else candidate.speedup
        files["evidence/summary.json"] = _summary(job, candidate, gain)
        files["evidence/steps.jsonl"] = _steps(20, 0.03 / gain)
    for block in job.blocks:
        for arm in job.arms:
            gain = {"baseline": 1.0}.get(arm, 0.95 if "native" in arm else candidate.speedup)
            folder = f"evidence/block-{block}/{arm}"
            files[f"{folder}/summary.json"] = {
                "schema": 1, "finished": True, "seed": block, "full_run_steps": 50_000,
                "compiler": {"requested": "none" if arm == "baseline" else "torch_compile",
                             "applied": True, "compile_seconds": 1.0 + 0.1 * block},
                "fingerprint": {"gpu": "g"}, "initial_loss": 3.0, "peak_memory_gib": 9.5,
            }  # fmt: skip
            files[f"{folder}/steps.jsonl"] = _steps(160, 0.03 / gain * (1 + 0.001 * block))
    return tarball(files)


def _summary(job: Job, candidate: Candidate, gain: float) -> Document:
    sign = 1 if candidate.goal == "minimize" else -1
    # Figures that differ from run to run as those of real jobs do, and are the same each time.
    wobble = ((job.seed * 7919 + job.number * 104_729) % 21 - 10) / 10
    lost = 0.0 if job.arm == "baseline" else candidate.loss
    return {
        "schema": 1, "finished": True, "seed": job.seed,
        "metrics": {candidate.metric: round(0.913 + sign * lost + 0.0005 * wobble, 6)},
        "wall_seconds": round(6 * 3600 / gain + 20 * wobble, 3),
        "compiler": {"requested": "none" if job.arm == "baseline" else "torch_compile",
                     "applied": True, "compile_seconds": 1.0},
        "fingerprint": {"gpu": "g"}, "initial_loss": 3.0,
    }  # fmt: skip


def _blocks(values: Mapping[str, str]) -> tuple[int, ...]:
    if "first_block" not in values:
        return ()
    first, count = (int(json.loads(values[key])) for key in ("first_block", "blocks"))
    return tuple(range(first, first + count))


def _decoded(text: str) -> str:
    encoded = json.loads(text).removeprefix("base64:")
    return str(json.loads(base64.urlsafe_b64decode(encoded))["name"])


def _steps(count: int, seconds: float) -> bytes:
    lines = (
        {"step": n, "seconds": round(seconds * (1 + 0.002 * (n % 5)), 9), "samples": 32,
         "loss": round(3.0 - n / count, 6)}
        for n in range(count)
    )  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
