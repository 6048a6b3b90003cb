"""Short trainings to the end, the same seeds in every arm: is it as good?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.gpu.processes import Machine
from benchmarks.gpu.workloads import Arm, Workload


def train(
    workload: Workload, arms: Sequence[Arm], machine: Machine, *, seeds: int,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Train what is still missing."""
    for seed, arm, folder in missing(workload, arms, machine.state / workload.name, seeds):
        if machine.seconds_left > 0:
            say(f"seed={seed} arm={arm.name} trained to the end")
            _train(workload, arm, machine, folder, seed)


def missing(
    workload: Workload, arms: Sequence[Arm], folder: Path, seeds: int
) -> list[tuple[int, Arm, Path]]:
    """(seed, arm, folder) of what is not trained yet; the order of arms turns round."""
    chosen = [arm for arm in arms if arm.quality and workload.quality_steps is not None]
    wanted = [
        (seed, arm, folder / f"quality-{seed:02d}-{arm.name}")
        for seed in range(1, seeds + 1)
        for arm in (chosen if seed % 2 else chosen[::-1])
    ]
    return [one for one in wanted if not is_settled(one[2])]


def _train(workload: Workload, arm: Arm, machine: Machine, folder: Path, seed: int) -> None:
    settings = workload.hyperparameters(arm, workload.quality_steps or 1)
    command = [str(machine.training / workload.program)]
    for key, value in {**settings, "seed": seed, "arm": arm.name}.items():
        command += [f"--{key}", str(value)]
    variables = machine.job(folder, workload.data, f"gpu-{workload.name}-{folder.name}")
    status = machine.run(command, variables, folder / "log")
    if status is not None:
        (folder / "settled").write_text(f"{status}\n")


def is_settled(folder: Path) -> bool:
    """Whether this training ran to its end, good or bad."""
    return (folder / "settled").exists()


def trained(folder: Path) -> list[tuple[int, str, Path]]:
    """(seed, arm, folder) of every training that was settled and left evidence."""
    found = []
    for path in sorted(folder.glob("quality-*")):
        _, seed, arm = path.name.split("-", 2)
        summary = path / "evidence" / "summary.json"
        if is_settled(path) and summary.exists():
            found.append((int(seed), arm, path))
    return found
