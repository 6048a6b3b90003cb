"""Kills real commands and clouds at random moments, and looks at what is left.

``python -m tests.localcloud.survival --moments 100 [--seed 1]``: each kind of death so often, all
of ``deaths.py`` that this machine can do. What must hold afterwards: no process of the run is left,
what was kept can be read, no command answers with a traceback, and the next command can start a
cloud in the same folder. After the death of the cloud alone, the next run lets the trial end.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from compilegate.adapters.kept_trials import KeptTrials
from distributions.localcloud.tests import helpers
from tests.localcloud.deaths import DEATHS, GOING_ON, LATEST_SECONDS, Place, missing, place

LEFT_SECONDS = 15.0
JOBS_OWN = "Framework Error: Traceback"
VERDICTS = (0, 10, 11, 13)  # exit codes of a trial that has ended


def survive(name: str, seconds: float) -> list[str]:
    """What is wrong after one death."""
    with place() as one:
        DEATHS[name](one, seconds)
        (process,) = one.processes
        try:
            said, _ = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            return [*one.wrong, "the command still runs after two minutes"]
        wrong = list(one.wrong)
        # A verdict quotes why a job failed: a request that was under way when the clock stepped.
        if said and "Traceback" in " ".join(said.split()).replace(JOBS_OWN, ""):
            wrong.append(f"a traceback: {said[-1200:]}")
        ended: Any = helpers.wait_for_none
        left = ended(str(one.work / "local"), LEFT_SECONDS)
        if left:
            wrong.append(f"{len(left)} processes are left")
        wrong += unreadable(one)
        wrong += not_going_on(one) if name in GOING_ON else []
        up = one.run("local", "up")
        if up.returncode:
            wrong.append(f"the next start: {up.returncode} {up.stderr[-600:]}")
    return wrong


def unreadable(one: Place) -> Iterator[str]:
    """Of what was kept."""
    for kept in (one.folder / ".compilegate" / "trials").glob("*/records.json"):
        json.loads(kept.read_text(encoding="utf-8"))
        status = one.run("status", "--local")
        if status.returncode or "survivor" not in status.stdout + status.stderr:
            yield f"status: {status.returncode} {status.stderr[-600:]}"


def not_going_on(one: Place) -> Iterator[str]:
    """The next run ends with a verdict, and no trial is left without an end."""
    again = one.run("run", "workload.yaml", "--local")
    if again.returncode not in VERDICTS or "Traceback" in again.stderr:
        yield f"the next run: {again.returncode} {again.stdout[-600:]} {again.stderr[-600:]}"
    for trial in KeptTrials(one.folder).trials:
        if not trial.ended:
            yield f"{trial.folder.name} has no end"


def main() -> int:
    """Every death at as many moments as asked for; exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.localcloud.survival")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--death", choices=list(DEATHS), action="append")
    # A trial takes longer where other programs run beside it.
    parser.add_argument("--latest", type=float, default=LATEST_SECONDS, metavar="SECONDS")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for name in options.death or DEATHS:
        lacking = missing(name)
        if lacking:
            sys.stdout.write(f"{name}: not tried, needs {lacking}\n")
            continue
        moments = random.Random(f"{name}-{options.seed}")
        for _ in range(options.moments):
            seconds = moments.uniform(0, options.latest)
            wrong = survive(name, seconds)
            counts[f"{name}: {'wrong' if wrong else 'as it should be'}"] += 1
            for line in wrong or ["as it should be"]:
                sys.stdout.write(f"{name} after {seconds:.2f} s: {line}\n")
            sys.stdout.flush()
    for line, count in sorted(counts.items()):
        sys.stdout.write(f"{count:5} {line}\n")
    return int(any(line.endswith("wrong") for line in counts))


if __name__ == "__main__":
    sys.exit(main())
