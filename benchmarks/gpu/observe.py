"""Counts the model's work in a step, and on demand profiles an arm; both by observed.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.machine import ROOT, Machine
from benchmarks.gpu.observed import PROFILED
from benchmarks.gpu.workloads import BASELINE, FULL_RUN_STEPS, Arm, Workload
from compilegate.domain.arithmetic import mean

STEPS = {"flops": 3, "profile": 40}


def flops(workload: Workload, machine: Machine) -> dict[str, Any] | None:
    """FLOPs of one step of the eager baseline, counted once and kept; None where that failed."""
    path = machine.state / workload.name / "flops.json"
    if not path.exists():
        observe("flops", workload, _baseline(workload), machine)
    return json.loads(path.read_text()) if path.exists() else None


def observe(what: str, workload: Workload, arm: Arm, machine: Machine) -> dict[str, Any] | None:
    """Run an arm for a few steps under observation; None where the run failed."""
    folder = machine.state / workload.name
    suffix = "" if what == "flops" else f"-{arm.name}"
    out, evidence = folder / f"{what}{suffix}.json", folder / f"observed-{what}{suffix}"
    settings = {**workload.hyperparameters(arm, FULL_RUN_STEPS), "max_steps": STEPS[what]}
    command = [str(ROOT / "benchmarks" / "gpu" / "observed.py"), what, str(out.resolve())]
    command.append(str(machine.training / workload.program))
    for key, value in settings.items():
        command += [f"--{key}", str(value)]
    machine.run(command, machine.job(evidence, workload.data, "gpu-observed"), evidence / "log")
    if not out.exists():
        return None
    result: dict[str, Any] = json.loads(out.read_text())
    if what == "profile":
        steps = _steps(evidence / "evidence" / "steps.jsonl")
        result["data_wait"] = _data_wait(steps[-result["steps"] :])
        result["recorded"] = recorded(steps, result.get("seconds_per_step"))
        out.write_text(json.dumps(result, indent=1) + "\n")
    return result


def recorded(
    steps: Sequence[Mapping[str, Any]], profiled_seconds: float | None
) -> dict[str, Any] | None:
    """What the recorder measured of the traced steps, beside the profiler's time per step.

    The profiler's is that from its first kernel to its last, so it lacks what precedes the first;
    ``ratio`` is the recorder's mean over it. The first traced step holds the profiler's start and
    the last its end: both are left out. None where either has nothing.
    """
    first, end = PROFILED
    traced = [step["seconds"] for step in steps if first < step["step"] < end - 1]
    if not traced or not profiled_seconds:
        return None
    mean_seconds = mean(traced)
    return {"seconds_per_step": mean_seconds, "ratio": mean_seconds / profiled_seconds}


def _steps(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _data_wait(steps: Sequence[Mapping[str, Any]]) -> float:
    """Share of the steps' time in which they waited for their batch."""
    waited = sum(step["data_wait_seconds"] or 0.0 for step in steps)
    return float(waited / sum(step["seconds"] for step in steps))


def _baseline(workload: Workload) -> Arm:
    return next(arm for arm in workload.arms if arm.name == BASELINE)
