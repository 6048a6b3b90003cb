"""Ways in which a command, its local cloud or what they stand on can fail while a trial runs."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import mmap
import os
import pty
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilegate_localcloud.connection import read_state
from compilegate_localcloud.places import (
    EMULATOR_PYTHON_VARIABLE,
    REPOSITORY,
    TRAINING_PYTHON_VARIABLE,
    find_places,
)
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
LATEST_SECONDS = 18.0  # a trial takes about as long
DISK_BYTES = 200_000_000  # a trial needs less
FILE_BYTES = 300_000  # where a file's growth ends as on a full disk: later in some runs than others
HOUR = 3600
CLOCK_STEPS = (-30 * 24 * HOUR, -HOUR, -60, 60, HOUR, 30 * 24 * HOUR)
NOBODY = 65534
# Another user who may read what root's folders hold, Python among it, and write nothing there.
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
)  # fmt: skip
# Folders with the two environments, `command` and `cloud`, of other Pythons.
PYTHONS_VARIABLE = "COMPILEGATE_SURVIVAL_PYTHONS"


@dataclass
class Place:
    """A project's folder, and the folder of the local cloud of its commands."""

    folder: Path
    python: str = sys.executable
    variables: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    # What went wrong already.
    wrong: list[str] = field(default_factory=list)

    @property
    def work(self) -> Path:
        """Where the cloud writes."""
        return self.folder / "work"

    @property
    def environment(self) -> Mapping[str, str]:
        """Of its commands."""
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), **self.variables}

    def command(self, *words: str) -> list[str]:
        """The command line of ``compilegate WORDS``."""
        return [self.python, "-c", COMMAND, str(self.work), *words]

    def cloud(self) -> int | None:
        """The emulator's process, once it has said so."""
        state = read_state(self.work / "local" / "state.json")
        return None if state is None else state.pid

    def run(self, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run ``compilegate WORDS`` to its end."""
        return subprocess.run(
            [*before, *self.command(*words)], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def start(self, **options: Any) -> subprocess.Popen[str]:
        """Start a trial."""
        process: subprocess.Popen[str] = subprocess.Popen(
            self.command("run", "workload.yaml", "--local"), cwd=self.folder, text=True,
            env=self.environment, stderr=subprocess.STDOUT,
            **{"stdout": subprocess.PIPE, **options},
        )  # fmt: skip
        self.processes.append(process)
        return process


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """A project with one workload."""
    with tempfile.TemporaryDirectory() as name:
        one = Place(Path(name))
        one.work.mkdir()
        share_assemblies(one)
        shutil.copytree(REPOSITORY / "tests" / "e2e" / "job", one.folder / "job")
        document = trial_document("survivor")
        (one.folder / "workload.yaml").write_text(json.dumps(document), encoding="utf-8")
        try:
            yield one
        finally:
            for process in one.processes:
                process.kill()
            one.run("local", "down")
            if one.work.is_mount():
                subprocess.run(["umount", "--lazy", one.work], check=False)


def share_assemblies(one: Place) -> None:
    """The app is synthesised once for all."""
    assemblies = REPOSITORY / ".compilegate" / "assemblies"
    assemblies.mkdir(parents=True, exist_ok=True)
    (one.work / "assemblies").symlink_to(assemblies)


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
    size = int(FILE_BYTES * min(seconds / LATEST_SECONDS, 1))
    one.start(preexec_fn=lambda: limit_files(size))


def limit_files(size: int) -> None:
    """As on a full disk: an error, not a signal, which Python ignores by default."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def own_disk(one: Place) -> None:
    """The cloud's folder is a disk of its own."""
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none"]
    subprocess.run(["mount", *options, str(one.work)], check=True)
    share_assemblies(one)


def disk_is_full(one: Place, seconds: float) -> None:
    """The cloud's disk is full from that time on, until the command has ended."""
    own_disk(one)
    process = one.start()
    time.sleep(seconds)
    with contextlib.suppress(OSError), (one.work / "filling").open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
    wait_for(one, process)
    (one.work / "filling").unlink()


def home_is_read_only(one: Place, seconds: float) -> None:
    """Nothing can be written on the cloud's disk from that time on, until the command has ended."""
    own_disk(one)
    process = one.start()
    time.sleep(seconds)
    # What is open for writing keeps a disk from being one that is only read.
    subprocess.run(["mount", "--bind", one.work, one.work], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", one.work], check=True)
    wait_for(one, process)
    subprocess.run(["umount", "--lazy", one.work], check=True)


def wait_for(one: Place, process: subprocess.Popen[str], seconds: float = 180) -> None:
    """Wait for the command's end; what it prints waits in its pipe, which has room for it."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        one.wrong.append(f"it still runs after {seconds:.0f} s")


def clock_steps(one: Place, seconds: float) -> None:
    """The clock of all its processes steps at that time, by a size that is drawn with it."""
    size = CLOCK_STEPS[int(seconds * 1000) % len(CLOCK_STEPS)]
    place_of_step = one.folder / "step"
    place_of_step.write_bytes(bytes(mmap.PAGESIZE))
    clock = {"LD_PRELOAD": str(clock_library()), "CLOCK_STEP": str(place_of_step)}
    one.variables |= clock | {TRAINING_PYTHON_VARIABLE: str(jobs_python(one.folder, clock))}
    one.start()
    time.sleep(seconds)
    with place_of_step.open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        ctypes.c_int64.from_buffer(page).value = size * 10**9


def jobs_python(folder: Path, variables: Mapping[str, str]) -> Path:
    """A Python for jobs that has these variables: a job inherits none of the cloud's."""
    python = find_places().training_python
    beside = folder / "bin"
    beside.mkdir()
    for program in ("train", "torchrun"):
        (beside / program).symlink_to(python.with_name(program))
    own = beside / "python"
    words = [*(f"{name}={value}" for name, value in variables.items()), str(python)]
    own.write_text(f'#!/bin/sh\nexec env {shlex.join(words)} "$@"\n', encoding="utf-8")
    own.chmod(0o755)
    return own


@functools.cache
def clock_library() -> Path:
    """The library that steps the clock, built now."""
    target = Path(tempfile.mkdtemp()) / "clock_step.so"
    source = Path(__file__).with_name("clock_step.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl"], check=True)
    return target


def another_user_comes(one: Place, seconds: float) -> None:
    """Somebody who may read but not write there asks for the cloud at that time."""
    one.folder.chmod(0o755)
    process = one.start()
    time.sleep(seconds)
    reads, starts = ("status", "--local"), (("local", "up"), ("run", "workload.yaml", "--local"))
    for words in (reads, *starts):
        result = one.run(*words, before=AS_NOBODY)
        # What has been kept already can be read.
        expected = (0, 1) if words == reads else (1,)
        if "Traceback" in result.stderr or result.returncode not in expected:
            one.wrong.append(f"{words}: {result.returncode} {result.stderr[-400:]}")
    wait_for(one, process)
    if process.returncode:
        one.wrong.append(f"the trial ended with {process.returncode}")


def other_pythons() -> Mapping[str, Path]:
    """Environments of other Pythons by their names, as far as somebody made some."""
    folder = os.environ.get(PYTHONS_VARIABLE)
    return {path.name: path for path in sorted(Path(folder).iterdir())} if folder else {}


def with_python(environments: Path) -> Callable[[Place, float], None]:
    """Command and cloud run another Python, and the cloud is killed."""

    def die(one: Place, seconds: float) -> None:
        one.python = str(environments / "command" / "bin" / "python")
        one.variables[EMULATOR_PYTHON_VARIABLE] = str(environments / "cloud" / "bin" / "python")
        cloud_is_killed(one, seconds)

    return die


DEATHS: dict[str, Callable[[Place, float], None]] = {
    "command SIGKILL": command_gets(signal.SIGKILL),
    "command SIGHUP": command_gets(signal.SIGHUP),
    "command SIGTERM": command_gets(signal.SIGTERM),
    "terminal closed": terminal_is_closed,
    "cloud SIGKILL": cloud_is_killed,
    "files limited": files_cannot_grow,
    "disk full": disk_is_full,
    "home read-only": home_is_read_only,
    "clock steps": clock_steps,
    "another user": another_user_comes,
    **{f"Python {name}": with_python(path) for name, path in other_pythons().items()},
}
# Those after which the next command goes on with the trial, and lets it end.
GOING_ON = frozenset({"cloud SIGKILL", *(name for name in DEATHS if name.startswith("Python "))})
NEEDED = {
    "disk full": "mount", "home read-only": "mount", "clock steps": "cc", "another user": "setpriv",
}  # fmt: skip


def missing(name: str) -> str:
    """What this machine or user lacks for it; empty where nothing is missing."""
    program = NEEDED.get(name, "")
    if not program:
        return ""
    if program != "cc" and os.geteuid() != 0:
        return "root"
    return "" if shutil.which(program) else program
