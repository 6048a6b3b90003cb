"""One workload's runs: blocks by the product's own speed gate, and trainings to the end.

The evidence on disk is what has been measured: a call that is cut short loses the block or training
in hand, and the next call continues after the last whole one. Trainings use the same seeds in
every arm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.machine import Machine
from benchmarks.gpu.workloads import BASELINE, FULL_RUN_STEPS, Arm, Workload

STOPPED = "stopped by SIGTERM"


def measure_speed(
    workload: Workload, arms: Sequence[Arm], machine: Machine, *, blocks: int, steps: int,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Run what of ``blocks`` blocks is still missing; ``say`` gets a line for every segment."""
    folder = machine.state / workload.name
    failed = failures(folder)
    sound = [arm for arm in arms if arm.name not in failed]
    first, missing = next_block(folder), blocks - measured(folder, sound)
    if missing <= 0 or machine.seconds_left <= 0 or BASELINE in failed or len(sound) < 2:
        return
    number = len(list(folder.glob("speed-*")))
    job = folder / f"speed-{number:02d}"
    job.mkdir(parents=True)
    plan = {
        "program": workload.program, "first_block": first, "blocks": missing, "steps": steps,
    }  # fmt: skip
    settings = {arm.name: workload.hyperparameters(arm, FULL_RUN_STEPS) for arm in sound}
    (job / "job.json").write_text(json.dumps({**plan, "arms": settings}, indent=1) + "\n")
    command = [str(machine.training / "compilegate_runtime" / "speed_gate.py")]
    for key, value in plan.items():
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
    whole: dict[int, list[str]] = {}
    failed: set[str] = set()
    for number, folder in sorted(_blocks(job)):
        summaries = {arm: _summary(folder / arm) for arm in arms if arm not in failed}
        if all(_is_over(summary) for summary in summaries.values()):
            whole[number] = list(summaries)
        failed |= {arm for arm, one in summaries.items() if _failed(one)}
    return {number: names for number, names in whole.items() if BASELINE in names}


def failures(folder: Path) -> dict[str, str]:
    """Why arms failed by themselves, in any job: they would fail again."""
    return {
        path.parent.name: str(summary["reason"])
        for path in sorted(folder.glob("speed-*/evidence/block-*/*/summary.json"))
        if _failed(summary := json.loads(path.read_text()))
    }


def next_block(folder: Path) -> int:
    """The first block number that no job has begun."""
    begun = [n for job in folder.glob("speed-*") for n, _ in _blocks(job)]
    return max(begun, default=-1) + 1


def measured(folder: Path, arms: Sequence[Arm]) -> int:
    """Whole blocks that hold all of these arms."""
    names = {arm.name for arm in arms}
    jobs = [whole_blocks(job) for job in sorted(folder.glob("speed-*"))]
    return sum(names <= set(held) for blocks in jobs for held in blocks.values())


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


def _is_over(summary: dict[str, Any] | None) -> bool:
    return bool(summary) and (summary.get("finished") is True or _failed(summary))


# ---- trainings to the end -----------------------------------------------------------------


def train(
    workload: Workload, arms: Sequence[Arm], machine: Machine, *, seeds: int,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Train what is still missing."""
    for seed, arm, folder in untrained(workload, arms, machine.state / workload.name, seeds):
        if machine.seconds_left > 0:
            say(f"seed={seed} arm={arm.name} trained to the end")
            _train(workload, arm, machine, folder, seed)


def untrained(
    workload: Workload, arms: Sequence[Arm], folder: Path, seeds: int
) -> list[tuple[int, Arm, Path]]:
    """(seed, arm, folder) of what is not trained yet; the order of arms alternates."""
    chosen = [arm for arm in arms if arm.quality and workload.quality_steps is not None]
    trainings = [
        (seed, arm, folder / f"quality-{seed:02d}-{arm.name}")
        for seed in range(1, seeds + 1)
        for arm in (chosen if seed % 2 else chosen[::-1])
    ]
    return [one for one in trainings if not is_over(one[2])]


def _train(workload: Workload, arm: Arm, machine: Machine, folder: Path, seed: int) -> None:
    settings = workload.hyperparameters(arm, workload.quality_steps or 1)
    command = [str(machine.training / workload.program)]
    for key, value in {**settings, "seed": seed, "arm": arm.name}.items():
        command += [f"--{key}", str(value)]
    variables = machine.job(folder, workload.data, f"gpu-{workload.name}-{folder.name}")
    status = machine.run(command, variables, folder / "log")
    if status is not None:
        (folder / "done").write_text(f"{status}\n")


def is_over(folder: Path) -> bool:
    """Whether this training ran to its end, good or bad."""
    return (folder / "done").exists()


def trained(folder: Path) -> list[tuple[int, str, Path]]:
    """(seed, arm, folder) of every training that ended and left evidence."""
    ended = []
    for path in sorted(folder.glob("quality-*")):
        _, seed, arm = path.name.split("-", 2)
        summary = path / "evidence" / "summary.json"
        if is_over(path) and summary.exists():
            ended.append((int(seed), arm, path))
    return ended
