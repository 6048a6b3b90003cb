"""Training jobs that leave, in figures, what their script would have left."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.archives import tarball

Document = dict[str, Any]


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


# What a job ends with: keys of its description, and ``output`` for what its summary says.
Ends = Callable[[Job], Document]


def complete() -> Ends:
    """Every job completes."""
    return lambda _job: {}


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


def output_of(job: Job, candidate: Candidate, changed: Mapping[str, Any]) -> bytes:
    """The output archive; ``changed`` are keys of a full run's summary, or of an arm's blocks."""
    files: Document = {}
    if not job.blocks:
        gain = 1.0 if job.arm == "baseline" else candidate.speedup
        files["evidence/summary.json"] = {**_summary(job, candidate, gain), **changed}
        files["evidence/steps.jsonl"] = _steps(20, 0.03 / gain)
    for block in job.blocks:
        for arm in job.arms:
            gain = {"baseline": 1.0}.get(arm, 0.95 if "native" in arm else candidate.speedup)
            folder = f"evidence/block-{block}/{arm}"
            summary = {
                "schema": 1, "finished": True, "seed": block, "full_run_steps": 50_000,
                "compiler": {"requested": "none" if arm == "baseline" else "torch_compile",
                             "applied": True, "compile_seconds": 1.0 + 0.1 * block},
                "fingerprint": {"gpu": "g"}, "initial_loss": 3.0, "peak_memory_gib": 9.5,
            }  # fmt: skip
            files[f"{folder}/summary.json"] = {**summary, **changed.get(arm, {})}
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
