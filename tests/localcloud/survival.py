"""Kills real commands and clouds at random moments of a trial, and looks at what is left.

``python -m tests.localcloud.survival --moments 100 [--seed 1]``: each kind of death so often. What
must hold afterwards: no process of the run is left, what was kept can be read, no command answers
with a traceback, and the next command can start a cloud in the same folder. After the death of the
cloud alone, the next run lets the trial end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compilegate.adapters.kept_trials import KeptTrials
from compilegate_localcloud.connection import read_state
from compilegate_localcloud.places import REPOSITORY
from distributions.localcloud.tests import helpers
from tests.e2e.conftest import trial_document

# The command with a folder of its own for the cloud; the synthesised app is everybody's.
COMMAND = """
import sys
from pathlib import Path
from compilegate_localcloud import places
work = Path(sys.argv[1])
places.work_folder = lambda: work
from compilegate.cli.main import main
sys.argv[:2] = ["compilegate"]
main()
"""
RUN = ("run", "workload.yaml", "--local")
LATEST_SECONDS = 18.0  # a trial takes about as long
LEFT_SECONDS = 15.0
JOBS_OWN = "Framework Error: Traceback"
VERDICTS = (0, 10, 11, 13)  # exit codes of a trial that has ended
CLOUD = "cloud SIGKILL"
# What dies of which signal: the command, or the emulator of its cloud.
DEATHS = {
    "command SIGKILL": signal.SIGKILL,
    "command SIGHUP": signal.SIGHUP,
    "command SIGTERM": signal.SIGTERM,
    CLOUD: signal.SIGKILL,
}


class Place:
    """A project's folder with one workload, and the folder of the local cloud of its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.work.mkdir()
        assemblies = REPOSITORY / ".compilegate" / "assemblies"
        assemblies.mkdir(parents=True, exist_ok=True)
        (self.work / "assemblies").symlink_to(assemblies)
        shutil.copytree(REPOSITORY / "tests" / "e2e" / "job", folder / "job")
        (folder / "workload.yaml").write_text(json.dumps(trial_document("survivor")))

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start ``compilegate WORDS``."""
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(self.work), *words], cwd=self.folder, text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE,
            **{"stderr": subprocess.PIPE, **options},
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``compilegate WORDS`` to its end."""
        process = self.start(*words)
        out, error = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out, error)

    def kill_cloud(self, command: subprocess.Popen[str], number: int) -> None:
        """Kill the emulator, or wait until there is one."""
        state_file = self.work / "local" / "state.json"
        while (state := read_state(state_file)) is None and command.poll() is None:
            time.sleep(0.01)
        if state is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.pid, number)


def survive(name: str, seconds: float) -> list[str]:
    """What is wrong after one death in a trial that began so long before."""
    with tempfile.TemporaryDirectory() as folder:
        one = Place(Path(folder))
        command = one.start(*RUN, stderr=subprocess.STDOUT)
        try:
            time.sleep(seconds)
            if name == CLOUD:
                one.kill_cloud(command, DEATHS[name])
            else:
                command.send_signal(DEATHS[name])
            said, _ = command.communicate(timeout=120)
            return list(wrong_after(one, said, goes_on=name == CLOUD))
        except subprocess.TimeoutExpired:
            return ["the command still runs after two minutes"]
        finally:
            command.kill()
            one.run("local", "down")


def wrong_after(one: Place, said: str, *, goes_on: bool) -> Iterator[str]:
    """Of what is left; the next run ends with a verdict where the command could have gone on."""
    # A verdict quotes why a job failed.
    if "Traceback" in " ".join(said.split()).replace(JOBS_OWN, ""):
        yield f"a traceback: {said[-1200:]}"
    ended: Any = helpers.wait_for_none
    if left := ended(str(one.work / "local"), LEFT_SECONDS):
        yield f"{len(left)} processes are left"
    for kept in (one.folder / ".compilegate" / "trials").glob("*/records.json"):
        json.loads(kept.read_text(encoding="utf-8"))
        status = one.run("status", "--local")
        if status.returncode or "survivor" not in status.stdout + status.stderr:
            yield f"status: {status.returncode} {status.stderr[-600:]}"
    if goes_on:
        again = one.run(*RUN)
        if again.returncode not in VERDICTS or "Traceback" in again.stderr:
            yield f"the next run: {again.returncode} {again.stdout[-600:]} {again.stderr[-600:]}"
        for trial in KeptTrials(one.folder).trials:
            if not trial.ended:
                yield f"{trial.folder.name} has no end"
    up = one.run("local", "up")
    if up.returncode:
        yield f"the next start: {up.returncode} {up.stderr[-600:]}"


def main() -> int:
    """Every death at as many moments as asked for; exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.localcloud.survival")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--death", choices=list(DEATHS), action="append")
    # A trial takes longer where other programs run beside it.
    parser.add_argument("--latest", type=float, default=LATEST_SECONDS, metavar="SECONDS")
    options = parser.parse_args()
    all_wrong = 0
    for name in options.death or DEATHS:
        moments = random.Random(f"{name}-{options.seed}")
        for _ in range(options.moments):
            seconds = moments.uniform(0, options.latest)
            wrong = survive(name, seconds)
            all_wrong += bool(wrong)
            for line in wrong or ["as it should be"]:
                sys.stdout.write(f"{name} after {seconds:.2f} s: {line}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{all_wrong} deaths left something wrong\n")
    return int(all_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
