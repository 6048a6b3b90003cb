"""Turns what a job left in its output tarball into runs of the evidence document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, shown
from compilegate.usecases.job_output import JobOutput

BLOCK = re.compile(r"evidence/block-(\d+)/([a-z0-9-]+)/summary\.json")
COLD = re.compile(r"evidence/cold/([a-z0-9-]+)/summary\.json")
FULL = "evidence/summary.json"


def speed_runs(output: JobOutput, *, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(arm, run) for every segment of a speed job."""
    cold = {
        match[1]: _compile_seconds(summary)
        for name, summary in output.summaries.items()
        if (match := COLD.fullmatch(name))
    }
    for name in sorted(output.summaries):
        match = BLOCK.fullmatch(name)
        if not match:
            continue
        block, arm = int(match[1]), match[2]
        summary, steps = output.summary(name), output.steps_beside(name)
        yield (
            arm,
            {
                **_common(summary, job),
                "stage": "speed",
                "block": block,
                "node": job,
                "step_seconds": steps.seconds.tolist(),
                "samples_per_step": steps.samples_per_step,
                "compile_seconds": _compile_seconds(summary) or 0.0,
                "cold_compile_seconds": cold.get(arm),
                "full_run_steps": summary.get("full_run_steps"),
            },
        )


def quality_run(output: JobOutput, *, job: str, order: int, metric: str) -> dict[str, Any]:
    """The run of a full job that completed."""
    summary = output.summary(FULL)
    metrics = _section(summary, "metrics", job)
    finished = summary.get("finished") is True
    if finished and metrics.get(metric) is None:
        recorded = ", ".join(sorted(metrics)) or "nothing"
        raise InvalidEvidenceError(
            f"{job} finished without recording quality.metric {metric!r}; it recorded {recorded}. "
            "Fix: name a metric that the training script records"
        )
    return {
        **_common(summary, job),
        "stage": "quality",
        "mode": "shadow",
        "order": order,
        "seed": summary.get("seed"),
        "metric": metrics.get(metric) if finished else None,
        "wall_seconds": summary.get("wall_seconds"),
        "compile_seconds": _compile_seconds(summary),
        "loss_curve": output.steps_beside(FULL).loss_curve(),
    }


def failed_quality_run(*, job: str, order: int, seed: int, reason: str) -> dict[str, Any]:
    """A full run that crashed or timed out: a result, not missing data."""
    return {
        "stage": "quality", "mode": "shadow", "order": order, "seed": seed, "metric": None,
        "wall_seconds": None, "finished": False, "job": job, "reason": reason,
    }  # fmt: skip


def _common(summary: Mapping[str, Any], job: str) -> dict[str, Any]:
    compiler = _section(summary, "compiler", job)
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
        "fingerprint": _section(summary, "fingerprint", job),
        "initial_loss": summary.get("initial_loss"),
        "initial_weights_sha256": summary.get("initial_weights_sha256"),
        "peak_memory_gib": summary.get("peak_memory_gib"),
        "reason": summary.get("reason"),
    }


def _section(summary: Mapping[str, Any], key: str, job: str) -> Mapping[str, Any]:
    """A mapping of a summary, empty where it is absent."""
    found = summary.get(key)
    if found is not None and not isinstance(found, Mapping):
        raise InvalidEvidenceError(
            f"{job}: {key} in its summary must map names to values, got {shown(found)}. "
            "Fix: let the recorder write the summary"
        )
    return found or {}


def _compile_seconds(summary: Mapping[str, Any]) -> float | None:
    compiler = summary.get("compiler")
    value = compiler.get("compile_seconds") if isinstance(compiler, Mapping) else None
    return float(value) if isinstance(value, int | float) else None
