"""What simulated training jobs leave: figures that vary as those of real jobs do, and lies."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from tests.archives import tarball
from tests.faults.jobs import Job
from tests.faults.simulation_schedule import Truth

Document = dict[str, Any]
STEPS, STEP_SECONDS, COMPILE_SECONDS = 50_000, 0.4, 20.0
# A segment's lines, and a whole run's, each of which stands for many steps.
BLOCK_LINES, RUN_LINES, SAMPLES = 110, 20, 32
# Standard deviations of a block's and a whole job's time, and of the final metric.
BLOCK_SD, RUN_SD, METRIC_SD = 0.01, 0.012, 0.0006
METRIC = 0.913
START_SECONDS = 90
# Lies of half the work of a whole run.
FEWER_STEPS = ("half_steps", "half_untold")
FEWER_SAMPLES = ("half_samples", "half_in_full_runs")
LESS_WORK = (*FEWER_STEPS, *FEWER_SAMPLES)


def whole_job_seconds(truth: Truth | None) -> float:
    """What a whole job takes on average; None is the baseline."""
    if truth is None:
        return STEPS * STEP_SECONDS
    return STEPS * STEP_SECONDS / truth.speedup + COMPILE_SECONDS


def true_speedup(truth: Truth) -> float:
    """Of whole jobs, compilation included."""
    return whole_job_seconds(None) / whole_job_seconds(truth)


def output(job: Job, truth: Truth, metric: str, lie: str, chance: random.Random) -> bytes | None:
    """The archive that the job leaves, None for none; the candidate tells the ``lie`` in it."""
    if lie == "missing":
        return None
    files = (
        _blocks(job, truth, lie, chance) if job.blocks else _run(job, truth, metric, lie, chance)
    )
    body = tarball(files)
    return body[: len(body) // 2] if lie == "broken" else body


def job_seconds(job: Job, truth: Truth, lie: str) -> int:
    """How long SageMaker says that it ran."""
    if job.blocks:
        return START_SECONDS + 120 * len(job.blocks) * len(job.arms)
    if job.arm == "baseline":
        return START_SECONDS + int(whole_job_seconds(None))
    return START_SECONDS + int(whole_job_seconds(truth) / (2 if lie in LESS_WORK else 1))


def _blocks(job: Job, truth: Truth, lie: str, chance: random.Random) -> Document:
    files: Document = {}
    for block in job.blocks:
        for arm in job.arms:
            ours = arm != "baseline"
            lies = lie if ours else ""
            if lies == "one_sided":
                continue
            folder = f"evidence/block-{block}/{arm}"
            seconds = STEP_SECONDS * math.exp(chance.gauss(0, BLOCK_SD))
            summary = {
                "schema": 1, "finished": lies != "unfinished", "seed": block,
                "full_run_steps": STEPS, "compiler": _compiler(ours),
                "fingerprint": {"gpu": "g"}, "initial_loss": 3.0, "peak_memory_gib": 9.5,
            }  # fmt: skip
            if lies != "partial":
                files[f"{folder}/summary.json"] = _document(summary, lies)
            half = 2 if lies == "half_samples" else 1
            seconds /= half * (truth.speedup if ours else 1.0)
            files[f"{folder}/steps.jsonl"] = _lines(BLOCK_LINES, 1, seconds, SAMPLES // half)
    return files


def _run(job: Job, truth: Truth, metric: str, lie: str, chance: random.Random) -> Document:
    ours = job.arm != "baseline"
    lies = lie if ours else ""
    steps = STEPS // 2 if lies in FEWER_STEPS else STEPS
    samples = SAMPLES // 2 if lies in FEWER_SAMPLES else SAMPLES
    gain = (truth.speedup if ours else 1.0) * (2 if lies in LESS_WORK else 1)
    seconds = STEP_SECONDS / gain * math.exp(chance.gauss(0, RUN_SD))
    value = METRIC + chance.gauss(0, METRIC_SD) - (truth.loss if ours else 0.0)
    summary = {
        "schema": 1, "finished": lies != "unfinished", "seed": job.seed,
        "metrics": {metric: round(value, 6)}, "steps": steps, "seconds": round(STEPS * seconds, 3),
        "wall_seconds": round(STEPS * seconds + (COMPILE_SECONDS if ours else 0), 3),
        "compiler": _compiler(ours), "fingerprint": {"gpu": "g"}, "initial_loss": 3.0,
    }  # fmt: skip
    if lies == "half_untold":
        del summary["steps"], summary["seconds"]
    lines = _lines(RUN_LINES, steps // RUN_LINES, seconds * STEPS / steps, samples)
    if lies == "partial":
        return {"evidence/steps.jsonl": lines}
    return {"evidence/summary.json": _document(summary, lies), "evidence/steps.jsonl": lines}


def _compiler(ours: bool) -> Document:
    if not ours:
        return {"requested": "none", "applied": True}
    return {"requested": "torch_compile", "applied": True, "compile_seconds": COMPILE_SECONDS}


def _lines(count: int, steps: int, seconds: float, samples: int) -> bytes:
    more = f', "steps": {steps}' if steps > 1 else ""
    lines = (
        f'{{"step": {n * steps}, "seconds": {seconds * (1 + 0.002 * (n % 5)):.9f}, "samples": '
        f'{samples}, "loss": {3.0 - n / count:.6f}{more}}}\n'
        for n in range(count)
    )
    return "".join(lines).encode()


def _document(summary: Document, lie: str) -> Document | bytes:
    """The summary; with ``duplicate_keys`` it says two things by one key."""
    if lie != "duplicate_keys":
        return summary
    return f'{json.dumps(summary)[:-1]}, "finished": true, "seed": 1}}'.encode()
