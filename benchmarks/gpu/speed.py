"""Blocks of one workload, run by the product's own speed gate and kept as it leaves them.

The gate's evidence on disk is what has been measured: a call that is cut short loses the block
in hand, and the next call goes on with the one after the last that is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.processes import Machine
from benchmarks.gpu.workloads import BASELINE, FULL_RUN_STEPS, Arm, Workload

STOPPED = "stopped by SIGTERM"


def measure(
    workload: Workload, arms: Sequence[Arm], machine: Machine, *, blocks: int, steps: int,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Run what of ``blocks`` blocks is still missing; ``say`` hears of every segment."""
    folder = machine.state / workload.name
    failed = failures(folder)
    wanted = [arm for arm in arms if arm.name not in failed]
    first, missing = next_block(folder), blocks - measured(folder, wanted)
    if missing <= 0 or machine.seconds_left <= 0 or BASELINE in failed or len(wanted) < 2:
        return
    number = len(list(folder.glob("speed-*")))
    job = folder / f"speed-{number:02d}"
    job.mkdir(parents=True)
    asked = {
        "program": workload.program, "first_block": first, "blocks": missing, "steps": steps,
    }  # fmt: skip
    settings = {arm.name: workload.hyperparameters(arm, FULL_RUN_STEPS) for arm in wanted}
    (job / "job.json").write_text(json.dumps({**asked, "arms": settings}, indent=1) + "\n")
    command = [str(machine.training / "compilegate_runtime" / "speed_gate.py")]
    for key, value in asked.items():
        command += [f"--{key}", str(value)]
    for index, (name, hyperparameters) in enumerate(settings.items()):
        described = {"name": name, "hyperparameters": hyperparameters}
        command += [f"--arm_{index}", json.dumps(described)]
    variables = machine.job(job, workload.data, f"gpu-{workload.name}-{number:02d}")
    status = machine.run(command, variables, job / "log", _segments(say))
    if status:
        say(f"{workload.name}: the speed gate failed, see {job / 'log'}")


def _segments(say: Callable[[str], None]) -> Callable[[str], None]:
    def line(text: str) -> None:
        starts = text.startswith("compilegate ") and "step=" not in text
        if starts and any(word in text for word in ("priming=", "blocks=", "failed=")):
            say(text.removeprefix("compilegate "))

    return line


def whole_blocks(job: Path) -> dict[int, list[str]]:
    """The arms of every block that is whole: each one finished, or failed by itself."""
    arms = list(json.loads((job / "job.json").read_text())["arms"])
    found: dict[int, list[str]] = {}
    failed: set[str] = set()
    for number, folder in sorted(_blocks(job)):
        summaries = {arm: _summary(folder / arm) for arm in arms if arm not in failed}
        if all(_settled(summary) for summary in summaries.values()):
            found[number] = list(summaries)
        failed |= {arm for arm, one in summaries.items() if _failed(one)}
    return {number: names for number, names in found.items() if BASELINE in names}


def failures(folder: Path) -> dict[str, str]:
    """Why arms failed by themselves, in any job: they would fail again, at a price."""
    found = {
        path.parent.name: _summary(path.parent) or {}
        for path in sorted(folder.glob("speed-*/evidence/block-*/*/summary.json"))
        if _failed(_summary(path.parent))
    }
    return {name: str(summary["reason"]) for name, summary in found.items()}


def next_block(folder: Path) -> int:
    """The first block number that no job has begun."""
    begun = [n for job in folder.glob("speed-*") for n, _ in _blocks(job)]
    return max(begun, default=-1) + 1


def measured(folder: Path, arms: Sequence[Arm]) -> int:
    """Whole blocks that hold all of these arms."""
    names = {arm.name for arm in arms}
    jobs = [whole_blocks(job) for job in sorted(folder.glob("speed-*"))]
    return sum(names <= set(found) for blocks in jobs for found in blocks.values())


def _blocks(job: Path) -> list[tuple[int, Path]]:
    return [
        (int(path.name.removeprefix("block-")), path) for path in (job / "evidence").glob("block-*")
    ]


def _summary(folder: Path) -> dict[str, Any] | None:
    path = folder / "summary.json"
    return json.loads(path.read_text()) if path.exists() else None


def _failed(summary: dict[str, Any] | None) -> bool:
    reason = (summary or {}).get("reason")
    return bool(reason) and STOPPED not in str(reason)


def _settled(summary: dict[str, Any] | None) -> bool:
    return bool(summary) and (summary.get("finished") is True or _failed(summary))
