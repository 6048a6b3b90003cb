"""Tries the faults in the environment of the embedded cloud, and reads what became of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate.domain import naming
from lambdas.handlers import STEPS
from stacks import evaluate, train
from stacks.assets import PACKAGES
from tests.faults.jobs import WORKLOAD

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = REPOSITORY / ".venv-localcloud" / "bin" / "python"
# What the functions bring along, and the command's distribution that people's acts are in.
BESIDE = (REPOSITORY / PACKAGES, REPOSITORY / "distributions" / "operating")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, BESIDE))}
SECONDS = 1800.0  # a minute of processor time, on a machine that does much else


@dataclass(frozen=True)
class Result:
    """One row, tried; ``problems`` are empty where it ended as expected."""

    where: str
    what: str
    expected: str
    problems: list[str]


def definitions() -> dict[str, Any]:
    """The state machines as the stack defines them, their functions named by their step."""
    functions = {name: f"arn:aws:lambda:us-east-1:111122223333:function:{name}" for name in STEPS}
    topic = "arn:aws:sns:us-east-1:111122223333:topic"
    return {
        naming.EVALUATE: evaluate.definition(functions, bucket="data", topic_arn=topic),
        naming.TRAIN: train.definition(functions, bucket="data", topic_arn=topic),
    }


def tried(every: int = 1, *, seconds: float = SECONDS) -> list[Result]:
    """Every row, or every so-manieth; raises TimeoutExpired after ``seconds``."""
    given = {"definitions": definitions(), "workload": WORKLOAD}
    process = subprocess.run(
        [PYTHON, "-m", "tests.faults", str(every)], input=json.dumps(given), text=True,
        capture_output=True, timeout=seconds, cwd=REPOSITORY, check=False, env=ENVIRONMENT,
    )  # fmt: skip
    if process.returncode:
        raise RuntimeError(process.stderr[-3000:])
    return [Result(**json.loads(line)) for line in process.stdout.splitlines()]


def main() -> int:
    """Try every fault, say what did not end as expected; 1 where anything did not."""
    results = tried()
    broken = [one for one in results if one.problems]
    for one in broken:
        _say(f"{one.where}: {one.what}", f"  expected: {one.expected}", *one.problems)
    for expected, count in sorted(Counter(one.expected for one in results).items()):
        _say(f"{count:6,}  {expected}")
    survived = len(results) - len(broken)
    _say(f"{len(results):,} faults tried, {survived:,} survived, {len(broken):,} not")
    return int(bool(broken))


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
