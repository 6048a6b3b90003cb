"""Turns what a job left in its output tarball into runs of the evidence document."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError

CURVE_POINTS = 200
BLOCK = re.compile(r"evidence/block-(\d+)/([a-z0-9-]+)/summary\.json")
COLD = re.compile(r"evidence/cold/([a-z0-9-]+)/summary\.json")

Files = Mapping[str, bytes]


def read_tarball(body: bytes) -> dict[str, bytes]:
    """The evidence files of an output tarball, by name."""
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        return {
            name: handle.read()
            for member in tar.getmembers()
            if (name := member.name.removeprefix("./")).startswith("evidence/")
            and (handle := tar.extractfile(member)) is not None
        }


def speed_runs(files: Files, *, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(arm, run) for every segment of a speed job."""
    cold = {
        match[1]: _compile_seconds(_summary(files, name))
        for name in files
        if (match := COLD.fullmatch(name))
    }
    for name in sorted(files):
        match = BLOCK.fullmatch(name)
        if not match:
            continue
        block, arm = int(match[1]), match[2]
        summary = _summary(files, name)
        steps = _steps(files, name.replace("summary.json", "steps.jsonl"))
        yield (
            arm,
            {
                **_common(summary, job),
                "stage": "speed",
                "block": block,
                "node": job,
                "step_seconds": [step["seconds"] for step in steps],
                "samples_per_step": _samples_per_step(steps),
                "compile_seconds": _compile_seconds(summary) or 0.0,
                "cold_compile_seconds": cold.get(arm),
                "full_run_steps": summary.get("full_run_steps"),
            },
        )


def quality_run(files: Files, *, job: str, order: int, metric: str) -> dict[str, Any]:
    """The run of a full job that completed."""
    summary = _summary(files, "evidence/summary.json")
    metrics = summary.get("metrics") or {}
    finished = summary.get("finished") is True
    if finished and metrics.get(metric) is None:
        recorded = ", ".join(sorted(metrics)) or "nothing"
        raise InvalidEvidenceError(
            f"{job} finished without recording quality.metric {metric!r}; it recorded {recorded}. "
            "Fix: name a metric that the training script records"
        )
    steps = _steps(files, "evidence/steps.jsonl")
    return {
        **_common(summary, job),
        "stage": "quality",
        "mode": "shadow",
        "order": order,
        "seed": summary.get("seed"),
        "metric": metrics.get(metric) if finished else None,
        "wall_seconds": summary.get("wall_seconds"),
        "compile_seconds": _compile_seconds(summary),
        "loss_curve": _loss_curve(steps),
    }


def failed_quality_run(*, job: str, order: int, seed: int, reason: str) -> dict[str, Any]:
    """A full run that crashed or timed out: a result, not missing data."""
    return {
        "stage": "quality", "mode": "shadow", "order": order, "seed": seed, "metric": None,
        "wall_seconds": None, "finished": False, "job": job, "reason": reason,
    }  # fmt: skip


def _common(summary: Mapping[str, Any], job: str) -> dict[str, Any]:
    compiler = summary.get("compiler") or {}
    finished = summary.get("finished") is True
    applied = compiler.get("applied")
    if not isinstance(applied, bool):
        # A run that crashed early could not tell, and one without a compiler has nothing to
        # prove; any other had to.
        asked = compiler.get("requested") not in (None, "none")
        applied = False if finished and asked else None
    return {
        "job": job,
        "finished": finished,
        "applied": applied,
        "compiler": compiler,
        "fingerprint": summary.get("fingerprint") or {},
        "initial_loss": summary.get("initial_loss"),
        "peak_memory_gib": summary.get("peak_memory_gib"),
        "reason": summary.get("reason"),
    }


def _summary(files: Files, name: str) -> dict[str, Any]:
    try:
        summary = json.loads(files[name])
    except (KeyError, ValueError) as error:
        raise InvalidEvidenceError(f"{name} is missing from the job's output or broken") from error
    if not isinstance(summary, dict) or summary.get("schema") != 1:
        raise InvalidEvidenceError(f"{name} is not evidence of schema 1")
    return summary


def _steps(files: Files, name: str) -> list[dict[str, Any]]:
    """Step lines; a last line cut short by a killed job is dropped."""
    steps = []
    for line in files.get(name, b"").splitlines():
        try:
            steps.append(json.loads(line))
        except ValueError:
            break
    return steps


def _compile_seconds(summary: Mapping[str, Any]) -> float | None:
    value = (summary.get("compiler") or {}).get("compile_seconds")
    return float(value) if isinstance(value, int | float) else None


def _samples_per_step(steps: list[dict[str, Any]]) -> float | None:
    samples = [step["samples"] for step in steps if step.get("samples")]
    return sum(samples) / len(samples) if samples else None


def _loss_curve(steps: list[dict[str, Any]]) -> list[list[float]]:
    """[step, loss, seconds since the first step began], thinned to what a chart can show."""
    stride = max(1, len(steps) // CURVE_POINTS)
    curve, elapsed = [], 0.0
    for index, step in enumerate(steps):
        elapsed += step["seconds"]
        if (index % stride == 0 or index == len(steps) - 1) and step.get("loss") is not None:
            curve.append([step["step"], step["loss"], round(elapsed, 4)])
    return curve
