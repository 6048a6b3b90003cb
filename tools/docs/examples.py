"""Builds the evidence that users can try, and runs the commands that pages show."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from compilegate.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SHOWN = re.compile(
    r"(?P<start>```console\n\$ compilegate "
    r"(?P<command>judge docs/examples/[^\n|]*|judge --plan[^\n|]*|"
    r"doctor docs/examples/[^\n|]*|(?:plan|check) workloads/article[^\n|]*)"
    r"(?: \| sed -n '/(?P<first>[^/]+)/,/(?P<last>[^/]+)/p')?\n)(?P<output>.*?)(?P<end>```)",
    re.DOTALL,
)
FINGERPRINT = {
    "gpu": "A100-SXM4-40GB",
    "torch": "2.8.0",
    "code_sha256": "9c1f",
    "data_sha256": "e07b",
}
STEP_SECONDS, STEPS, FULL_RUN_STEPS = 0.41, 120, 52_000
SPEEDUP, COMPILE_SECONDS = 1.37, 96.0
HISTORY = (0.9121, 0.9138, 0.9127, 0.9119, 0.9133, 0.9142, 0.9125, 0.9130)
WALL_SECONDS = (21_480, 21_730, 21_390, 21_610, 21_820, 21_540, 21_300, 21_650)
METRICS = {"baseline": (0.9129, 0.9136), "compile": (0.9131, 0.9124, 0.9138)}
# Production after the promotion: the data changed, and the compiled model suffers more.
WATCHED = (0.9128, 0.9135, 0.9122, 0.9131, 0.9068)
CHECKED = {"baseline": (0.9126, 0.9133, 0.9121), "compile": (0.9066, 0.9072, 0.9070)}


def trial() -> dict[str, Any]:
    """A trial that ends with the compiler on."""
    rng = random.Random(20)  # noqa: S311 - an example, not a secret
    arms = {name: [segment(name, block, rng) for block in range(3)] for name in METRICS}
    order = 0
    for turn in range(3):
        for name in ("compile", "baseline"):
            if turn < len(METRICS[name]):
                arms[name].append(full_run("quality", order, name, METRICS[name][turn], rng))
                order += 1
    return document("trial", None, arms)


def probation() -> dict[str, Any]:
    """Production runs after it: a fall, the check, and the compiler off again."""
    rng = random.Random(21)  # noqa: S311 - an example, not a secret
    arms = {arm["name"]: list(arm["runs"]) for arm in trial()["arms"]}
    order = sum(len(metrics) for metrics in METRICS.values())
    for metric in WATCHED:
        arms["compile"].append(full_run("probation", order, "compile", metric, rng))
        order += 1
    for turn in range(3):
        for name in ("baseline", "compile"):
            run = full_run("probation", order, name, CHECKED[name][turn], rng)
            arms[name].append({**run, "confirm": True})
            order += 1
    return document("probation", "compile", arms)


def document(phase: str, promoted: str | None, arms: dict[str, Any]) -> dict[str, Any]:
    """An evidence document of these arms' runs."""
    return {
        "schema": 1, "workload": "bert-docs", "phase": phase, "promoted": promoted,
        "policy": {"quality_runs": "hybrid"},
        "quality": {"metric": "eval_accuracy", "goal": "maximize", "margin": 0.005,
                    "history": list(HISTORY), "history_wall_seconds": list(WALL_SECONDS)},
        "usd_per_hour": 32.77, "runs_per_week": 3, "runs_remaining": 156,
        "full_run_steps": FULL_RUN_STEPS, "devices": 8,
        "arms": [
            {"name": name, "overrides": {} if name == "baseline" else {"compiler": "torch_compile"},
             "runs": runs}
            for name, runs in arms.items()
        ],
    }  # fmt: skip


def segment(name: str, block: int, rng: random.Random) -> dict[str, Any]:
    """An arm's run in a short block."""
    compiled = name == "compile"
    step = STEP_SECONDS / (SPEEDUP if compiled else 1)
    node = (1.0, 1.021, 0.988)[block] * (1 + 0.012 * rng.uniform(-1, 1))
    steps = [round(step * node * (1 + 0.015 * rng.uniform(-1, 1)), 4) for _ in range(STEPS)]
    if compiled:
        steps[0] = round(steps[0] + COMPILE_SECONDS, 4)
    return {
        "stage": "speed", "block": block, "node": f"i-0{block}",
        "compile_seconds": COMPILE_SECONDS if compiled else 0.0, "step_seconds": steps,
        "samples_per_step": 256, "finished": True, "applied": True, "fingerprint": FINGERPRINT,
    }  # fmt: skip


def full_run(
    stage: str, order: int, name: str, metric: float, rng: random.Random
) -> dict[str, Any]:
    """A whole job of an arm."""
    step = STEP_SECONDS / (SPEEDUP if name == "compile" else 1)
    overhead = 240 + (COMPILE_SECONDS if name == "compile" else 0)
    wall = (overhead + step * FULL_RUN_STEPS) * (1 + 0.02 * rng.uniform(-1, 1))
    return {
        "stage": stage, "mode": "shadow" if stage == "quality" and order == 0 else "production",
        "order": order, "seed": 17 + order, "metric": metric, "wall_seconds": round(wall),
        "finished": True, "applied": True, "fingerprint": FINGERPRINT,
    }  # fmt: skip


DOCUMENTS = {"evidence.json": trial, "probation.json": probation}


def text(document: dict[str, Any]) -> str:
    """JSON with one run to a line."""
    head = {key: value for key, value in document.items() if key != "arms"}
    lines = [f'  "{key}": {json.dumps(value)},' for key, value in head.items()]
    arms = []
    for arm in document["arms"]:
        runs = ",\n".join(f"      {json.dumps(run)}" for run in arm["runs"])
        rest = json.dumps({key: value for key, value in arm.items() if key != "runs"})
        arms.append(f'    {rest[:-1]}, "runs": [\n{runs}\n    ]}}')
    return "{\n" + "\n".join(lines) + '\n  "arms": [\n' + ",\n".join(arms) + "\n  ]\n}\n"


def output_of(command: str, first: str | None, last: str | None) -> str:
    """What a page's command prints at 80 columns, cut as its sed would."""
    env = {"COLUMNS": "80", "AWS_REGION": "us-east-1"}
    words = [word for part in command.split() for word in _as_a_shell_would(part)]
    lines = CliRunner().invoke(app, words, env=env).stdout.splitlines()
    if first and last:
        begin = next(index for index, line in enumerate(lines) if re.search(first, line))
        length = next(index for index, line in enumerate(lines[begin:]) if re.search(last, line))
        lines = lines[begin : begin + length + 1]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _as_a_shell_would(part: str) -> list[str]:
    """A pattern's files, in order; any other word as it is."""
    return sorted(str(path) for path in Path().glob(part)) if "*" in part else [part]


def with_output(page: str) -> str:
    """The page with today's output."""
    return SHOWN.sub(
        lambda m: f"{m['start']}{output_of(m['command'], m['first'], m['last'])}{m['end']}", page
    )
