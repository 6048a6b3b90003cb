"""Counts the model's work in a step, and on demand profiles an arm; both by observed.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.gpu.machine import ROOT, Machine
from benchmarks.gpu.workloads import BASELINE, FULL_RUN_STEPS, Arm, Workload

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
        result["data_wait"] = _data_wait(evidence / "evidence" / "steps.jsonl", result["steps"])
        out.write_text(json.dumps(result, indent=1) + "\n")
    return result


def _data_wait(path: Path, steps: int) -> float:
    """Share of the last steps' time in which they waited for their batch."""
    last = [json.loads(line) for line in path.read_text().splitlines()][-steps:]
    waited = sum(step["data_wait_seconds"] or 0.0 for step in last)
    return waited / sum(step["seconds"] for step in last)


def _baseline(workload: Workload) -> Arm:
    return next(arm for arm in workload.arms if arm.name == BASELINE)
