"""What do compilers bring on this GPU? Measured as the product measures it.

    python -m benchmarks.gpu [--quick] [--only bert-128 ...] [--arms compile ...] [--blocks 3]
        [--steps 80] [--seeds 3] [--budget-minutes 9] [--state build/gpu]
    python -m benchmarks.gpu --profile gpt2-1024/compile
    python -m benchmarks.gpu --same gpt2-1024/compile
    python -m benchmarks.gpu --table
    python -m benchmarks.gpu --dry-run-cpu

Run it with the training environment's Python, 3.11 or later. Every block is kept when it is
whole, and the next call goes on after it: with a GPU for ten minutes at a time, repeat the first
command with --budget-minutes 9 until it says that all is measured. The state folder holds all of
it, with a copy of the training code, so that every block is of one code: remove it to start over.
results.json keeps the records; --table writes them into benchmarks/gpu/README.md.

--dry-run-cpu runs all of it on a processor with a tiny model, to try it out: what it says of
speed is about no GPU, and is kept elsewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import judged, observe, results, runs, same
from benchmarks.gpu.machine import ROOT, Machine, description
from benchmarks.gpu.workloads import (
    BASELINE,
    FULL_RUN_STEPS,
    TINY,
    WORKLOADS,
    Arm,
    Workload,
    missing,
)

STATE = ROOT / "build" / "gpu"
DRY_STATE = ROOT / "build" / "gpu-dry-run"
QUICK_STEPS, FEWEST_STEPS = 48, 40  # under the second no steady state is looked for
DRY_VARIABLES = {
    "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
}  # fmt: skip
BLOCKS, DRY_BLOCKS, SEEDS, DRY_SEEDS = 3, 2, 3, 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is chosen and still missing."""
    options = _options(arguments)
    if options.table:
        results.write()
        return
    simulated = options.dry_run_cpu
    if not simulated and not description()["gpu"]:
        sys.exit("There is no GPU that torch can use here. Try the pipeline with --dry-run-cpu.")
    state = options.state or (DRY_STATE if simulated else STATE)
    limit = options.budget_minutes * 60 if options.budget_minutes else float("inf")
    machine = Machine(state, time.monotonic() + limit, DRY_VARIABLES if simulated else {})
    machine.prepare()
    chosen = _chosen(TINY if simulated else WORKLOADS, options.only)
    if options.profile:
        workload, arm = _arm(chosen, options.profile, "--profile")
        profile = observe.observe("profile", workload, arm, machine)
        print(json.dumps(profile, indent=1) if profile else "the profiled run failed")
        return
    if options.same:
        _same(*_arm(chosen, options.same, "--same"), machine, options)
        return
    names = {arm.name for workload in chosen for arm in workload.arms}
    if unknown := set(options.arms or ()) - names:
        sys.exit(f"--arms: choose from {', '.join(sorted(names))}, not {', '.join(unknown)}")
    whole = [_measure(workload, machine, options) for workload in chosen]
    print("all is measured" if all(whole) else "not all is measured yet: run the same again")


def _measure(workload: Workload, machine: Machine, options: argparse.Namespace) -> bool:
    """Measure one workload, keep its record whenever a part is done; True when it is whole."""
    lacking = missing(workload.needs)
    if lacking or not machine.has(workload.data):
        say(f"{workload.name} left out: {lacking or f'no data {workload.data}'}")
        return True
    if machine.seconds_left <= 0:
        return False
    arms, left_out = _arms(workload, options)
    folder = machine.state / workload.name
    folder.mkdir(exist_ok=True)

    def keep() -> None:
        failed = runs.failures(folder)
        if BASELINE in failed:
            left_out[BASELINE] = failed[BASELINE]
        _keep(workload, machine, options, {"environment": description(), "left_out": left_out})

    def report(text: str) -> None:
        say(f"{workload.name} {text}")
        keep()

    observe.flops(workload, machine)
    runs.measure_speed(
        workload, arms, machine, blocks=options.blocks, steps=options.steps, say=report
    )
    failed = runs.failures(folder)
    arms = [] if BASELINE in failed else [arm for arm in arms if arm.name not in failed]
    runs.train(workload, arms, machine, seeds=options.seeds, say=report)
    keep()
    print(
        results.table(
            results.read(_path(options))["cards"][description()["gpu"] or results.SIMULATED][
                workload.name
            ]
        )
    )
    untrained = runs.untrained(workload, arms, folder, options.seeds)
    return not arms or (runs.measured(folder, arms) >= options.blocks and not untrained)


def _arms(workload: Workload, options: argparse.Namespace) -> tuple[list[Arm], dict[str, str]]:
    arms, left_out = [], {}
    for arm in workload.arms:
        chosen = arm.name in options.arms if options.arms else arm.quick or not options.quick
        lacking = missing(arm.needs)
        if arm.name == BASELINE or (chosen and not lacking):
            arms.append(arm)
        elif chosen and lacking:
            left_out[arm.name] = lacking
    return arms, left_out


def _keep(
    workload: Workload, machine: Machine, options: argparse.Namespace, facts: dict[str, Any]
) -> None:
    folder = machine.state / workload.name
    document = judged.document(workload, folder)
    (folder / "evidence.json").write_text(json.dumps(document) + "\n")  # for compilegate judge
    counted = folder / "flops.json"
    flops = json.loads(counted.read_text()) if counted.exists() else None
    record = {
        "workload": workload.name,
        "simulated": options.dry_run_cpu,
        **facts,
        "settings": dict(workload.settings),
        "metric": workload.metric,
        "goal": workload.goal,
        "margin": workload.margin,
        "speed_steps": options.steps,
        "full_run_steps": FULL_RUN_STEPS,
        "quality_steps": workload.quality_steps,
        **judged.figures(workload, document, flops, facts["environment"]["gpu"]),
    }
    results.keep(record, _path(options))


def _same(workload: Workload, arm: Arm, machine: Machine, options: argparse.Namespace) -> None:
    """Measure an arm against itself and print what the intervals say."""
    twins = same.against_itself(workload, arm)
    blocks = options.blocks_given or same.BLOCKS
    runs.measure_speed(twins, twins.arms, machine, blocks=blocks, steps=options.steps, say=say)
    folder = machine.state / twins.name
    logs = judged.steady_logs(judged.document(twins, folder), same.AGAIN)
    result = same.coverage(logs)
    (folder / "coverage.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    print("all is measured" if len(logs) >= blocks else "not all is measured yet: run it again")


def _arm(workloads: Sequence[Workload], target: str, option: str) -> tuple[Workload, Arm]:
    for workload in workloads:
        for arm in workload.arms:
            if f"{workload.name}/{arm.name}" == target:
                return workload, arm
    sys.exit(f"{option} takes WORKLOAD/ARM, for example bert-128/compile, not {target!r}")


def _chosen(workloads: Sequence[Workload], names: Sequence[str] | None) -> list[Workload]:
    every = [workload.name for workload in workloads]
    unknown = [name for name in names or () if name not in every]
    if unknown:
        sys.exit(f"--only: choose from {', '.join(every)}, not {unknown[0]}")
    return [workload for workload in workloads if not names or workload.name in names]


def _path(options: argparse.Namespace) -> Path:
    dry = (options.state or DRY_STATE) / "results.json"
    return dry if options.dry_run_cpu else results.RESULTS


def say(text: str) -> None:
    """Progress goes to standard error; the tables are the output."""
    print(text, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--quick", action="store_true", help="fewer arms, shorter segments")
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD")
    parser.add_argument("--arms", nargs="+", metavar="ARM", help="beside the baseline")
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--steps", type=int, help="of a segment")
    parser.add_argument("--seeds", type=int, help="trainings to the end per arm")
    parser.add_argument("--budget-minutes", type=float)
    parser.add_argument("--state", type=Path, help="folder of what is measured so far")
    parser.add_argument("--profile", metavar="WORKLOAD/ARM")
    parser.add_argument("--same", metavar="WORKLOAD/ARM", help="an arm against itself, 12 blocks")
    parser.add_argument("--table", action="store_true", help="write benchmarks/gpu/README.md")
    parser.add_argument("--dry-run-cpu", action="store_true")
    options = parser.parse_args(arguments)
    if options.steps is None:
        options.steps = QUICK_STEPS if options.quick or options.dry_run_cpu else 80
    options.blocks_given = options.blocks
    if options.blocks is None:
        options.blocks = DRY_BLOCKS if options.dry_run_cpu else BLOCKS
    if options.seeds is None:
        options.seeds = DRY_SEEDS if options.dry_run_cpu else SEEDS
    if options.steps < FEWEST_STEPS:
        parser.error(f"--steps must be {FEWEST_STEPS} or more: fewer have no steady state")
    return options


if __name__ == "__main__":
    main()
