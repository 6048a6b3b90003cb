"""Kills real commands and clouds at random moments, and looks at what is left.

``python -m tests.localcloud.survival --moments 100 [--seed 1]``: each kind of death so often. What
must hold afterwards: no process of the run is left, what was kept can be read, no command answers
with a traceback, and the next command can start a cloud in the same folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilegate.localcloud.connection import read_state
from compilegate.localcloud.places import REPOSITORY
from tests.e2e.conftest import trial_document
from tests.localcloud import helpers

# The command with a folder of its own for the cloud; the synthesised app is everybody's.
COMMAND = """
import sys
from pathlib import Path
from compilegate.localcloud import places
work = Path(sys.argv[1])
places.work_folder = lambda: work
from compilegate.cli.main import main
sys.argv[:2] = ["compilegate"]
main()
"""
LATEST_SECONDS = 18.0  # a trial takes about as long
LEFT_SECONDS = 15.0
FILE_BYTES = 300_000  # where a file's growth ends as on a full disk: later in some runs than others


@dataclass
class Place:
    """A project's folder, and the folder of the local cloud of its commands."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def work(self) -> Path:
        """Where the cloud writes."""
        return self.folder / "work"

    def command(self, *words: str) -> list[str]:
        """The command line of ``compilegate WORDS``."""
        return [sys.executable, "-c", COMMAND, str(self.work), *words]

    def cloud(self) -> int | None:
        """The emulator's process, once it has said so."""
        state = read_state(self.work / "local" / "state.json")
        return None if state is None else state.pid

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``compilegate WORDS`` to its end."""
        return subprocess.run(
            self.command(*words), cwd=self.folder, capture_output=True, text=True, check=False
        )

    def start(self, **options: Any) -> subprocess.Popen[str]:
        """Start a trial."""
        process: subprocess.Popen[str] = subprocess.Popen(
            self.command("run", "workload.yaml", "--local"), cwd=self.folder, text=True,
            stderr=subprocess.STDOUT, **{"stdout": subprocess.PIPE, **options},
        )  # fmt: skip
        self.processes.append(process)
        return process


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """A project with one workload."""
    with tempfile.TemporaryDirectory() as name:
        one = Place(Path(name))
        one.work.mkdir()
        assemblies = REPOSITORY / ".compilegate" / "assemblies"
        assemblies.mkdir(parents=True, exist_ok=True)
        (one.work / "assemblies").symlink_to(assemblies)
        shutil.copytree(REPOSITORY / "tests" / "e2e" / "job", one.folder / "job")
        document = trial_document("survivor")
        (one.folder / "workload.yaml").write_text(json.dumps(document), encoding="utf-8")
        try:
            yield one
        finally:
            for process in one.processes:
                process.kill()
            one.run("local", "down")


def command_gets(number: int) -> Callable[[Place, float], None]:
    """The command gets a signal after that time."""

    def die(one: Place, seconds: float) -> None:
        process = one.start()
        time.sleep(seconds)
        process.send_signal(number)

    return die


def cloud_is_killed(one: Place, seconds: float) -> None:
    """The emulator is killed after that time, or as soon as there is one."""
    process = one.start()
    time.sleep(seconds)
    while (pid := one.cloud()) is None and process.poll() is None:
        time.sleep(0.01)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def terminal_is_closed(one: Place, seconds: float) -> None:
    """The command runs in a terminal that is closed after that time."""
    ours, theirs = pty.openpty()
    one.start(
        stdin=theirs, stdout=theirs, start_new_session=True,
        preexec_fn=lambda: pty_is_ours(theirs),
    )  # fmt: skip
    os.close(theirs)
    deadline = time.monotonic() + seconds
    os.set_blocking(ours, False)
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            os.read(ours, 65536)
        time.sleep(0.05)
    os.close(ours)


def pty_is_ours(terminal: int) -> None:
    """Make a terminal the one that controls this process, which gets SIGHUP when it is closed."""
    import fcntl  # noqa: PLC0415 - after fork
    import termios  # noqa: PLC0415

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def files_cannot_grow(one: Place, seconds: float) -> None:
    """No file grows beyond a size that is drawn with the moment."""
    size = int(FILE_BYTES * seconds / LATEST_SECONDS)
    one.start(preexec_fn=lambda: limit_files(size))


def limit_files(size: int) -> None:
    """As on a full disk: an error, not a signal, which Python ignores by default."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


DEATHS: dict[str, Callable[[Place, float], None]] = {
    "command SIGKILL": command_gets(signal.SIGKILL),
    "command SIGHUP": command_gets(signal.SIGHUP),
    "command SIGTERM": command_gets(signal.SIGTERM),
    "terminal closed": terminal_is_closed,
    "cloud SIGKILL": cloud_is_killed,
    "files limited": files_cannot_grow,
}


def survive(name: str, seconds: float) -> list[str]:
    """What is wrong after one death."""
    wrong = []
    with place() as one:
        DEATHS[name](one, seconds)
        process = one.processes[0]
        said, _ = process.communicate(timeout=120)
        if said and "Traceback" in said:
            wrong.append(f"a traceback: {said[-600:]}")
        ended: Any = helpers.wait_for_none
        left = ended(str(one.work / "local"), LEFT_SECONDS)
        if left:
            wrong.append(f"{len(left)} processes are left")
        for kept in (one.folder / ".compilegate" / "trials").glob("*/records.json"):
            json.loads(kept.read_text(encoding="utf-8"))
            status = one.run("status", "--local")
            if status.returncode or "survivor" not in status.stdout + status.stderr:
                wrong.append(f"status: {status.returncode} {status.stderr[-600:]}")
        up = one.run("local", "up")
        if up.returncode:
            wrong.append(f"the next start: {up.returncode} {up.stderr[-600:]}")
    return wrong


def main() -> int:
    """Every death at as many moments as asked for; exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.localcloud.survival")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--death", choices=list(DEATHS), action="append")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for name in given.death or DEATHS:
        moments = random.Random(f"{name}-{given.seed}")
        for _ in range(given.moments):
            seconds = moments.uniform(0, LATEST_SECONDS)
            wrong = survive(name, seconds)
            counts[f"{name}: {'wrong' if wrong else 'as it should be'}"] += 1
            for line in wrong:
                sys.stdout.write(f"{name} after {seconds:.2f} s: {line}\n")
                sys.stdout.flush()
    for line, count in sorted(counts.items()):
        sys.stdout.write(f"{count:5} {line}\n")
    return int(any(line.endswith("wrong") for line in counts))


if __name__ == "__main__":
    sys.exit(main())
