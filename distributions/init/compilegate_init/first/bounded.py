"""Runs a process that is not trusted to end: within seconds, memory and a number of processes.

What it prints is read and all but its end forgotten. However it ends, every process that it has
started ends with it, also one that has left its group: they are known by a variable that each
inherits.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

VARIABLE = "COMPILEGATE_FIRST"
POLL_SECONDS = 0.1
# Processes of one run; a loader has a worker for each core at most.
MOST_PROCESSES = 512
# Beside those that the user has already.
MOST_THREADS = 8192
# Share of the memory that is free at the start.
MEMORY_SHARE = 0.8
KEPT_BYTES = 64 * 1024
KILLED_WITHIN_SECONDS = 10.0
PROC = Path("/proc")
# Of the machine and of a container (Linux: admin-guide/cgroup-v2).
CGROUP = Path("/sys/fs/cgroup")


class Cut(StrEnum):
    """Why a run was ended."""

    TIME = "time"
    MEMORY = "memory"
    PROCESSES = "processes"


@dataclass(frozen=True)
class Ended:
    """How a run ended; ``code`` is None where it was ``cut``. ``tail`` is the end of its output."""

    code: int | None
    cut: Cut | None
    tail: str
    seconds: float
    printed_bytes: int


def run_bounded(
    command: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    *,
    memory_bytes: int | None = None,
    processes: int = MOST_PROCESSES,
    update: Callable[[float, str], None] = lambda _seconds, _line: None,
) -> Ended:
    """Run a command here; ``update`` gets the seconds so far and the last line that it printed."""
    token = secrets.token_hex(8)
    began = time.monotonic()
    process = subprocess.Popen(  # noqa: S603 - the user's own script, as an argument list
        command, env={**environment, VARIABLE: token}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    with contextlib.suppress(OSError):  # the kernel then ends it before anything else
        (PROC / str(process.pid) / "oom_score_adj").write_text("1000")
    _limit_threads(process.pid)
    output = _Output(process)
    cut: Cut | None = None
    try:
        while process.poll() is None and cut is None:
            time.sleep(POLL_SECONDS)
            spent = time.monotonic() - began
            family = list(_family(token))
            if spent > seconds:
                cut = Cut.TIME
            elif len(family) > processes:
                cut = Cut.PROCESSES
            elif memory_bytes is not None and sum(map(_own_bytes, family)) > memory_bytes:
                cut = Cut.MEMORY
            update(spent, output.last_line)
    finally:
        _end(process, token)
    spent = time.monotonic() - began
    code = None if cut else process.returncode
    return Ended(code, cut, output.tail(), spent, output.size)


def _limit_threads(pid: int) -> None:
    """A hard limit for what multiplies between two looks, on Linux and for others than root."""
    mine = os.getuid()
    with contextlib.suppress(OSError, AttributeError, ValueError):
        owned = [one for one in PROC.glob("[0-9]*/task") if one.stat().st_uid == mine]
        most = sum(one.stat().st_nlink - 2 for one in owned) + MOST_THREADS
        resource.prlimit(pid, resource.RLIMIT_NPROC, (most, most))


class _Output:
    """Reads all that a process prints, and keeps its end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.size, self._kept = 0, b""
        self._pipe = process.stdout
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._pipe is not None  # noqa: S101 - for the type checker
        with contextlib.suppress(ValueError, OSError):
            while piece := self._pipe.read1(KEPT_BYTES):  # type: ignore[attr-defined]
                self.size += len(piece)
                self._kept = (self._kept + piece)[-KEPT_BYTES:]

    @property
    def last_line(self) -> str:
        lines = self._kept[-2048:].decode(errors="replace").replace("\r", "\n").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return "".join(mark for mark in last if mark.isprintable())

    def tail(self) -> str:
        """What it printed last, once every process that could print has ended."""
        self._thread.join(timeout=2.0)
        return self._kept.decode(errors="replace")


def _end(process: subprocess.Popen[bytes], token: str) -> None:
    """End the group, then whatever of it has left the group."""
    until = time.monotonic() + KILLED_WITHIN_SECONDS
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    while (family := list(_family(token))) and time.monotonic() < until:
        for pid in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
        time.sleep(POLL_SECONDS / 5)
    process.wait()


def _family(token: str) -> Iterator[int]:
    """The processes that run and have inherited the variable; none where there is no /proc."""
    mark = f"{VARIABLE}={token}".encode()
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                yield int(folder.name)


def _own_bytes(pid: int) -> int:
    """Memory that a process shares with no other (Linux: filesystems/proc, statm)."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        _, resident, shared = (PROC / str(pid) / "statm").read_text().split()[:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def memory_limit() -> int | None:
    """Bytes that a run may take: most of what is free now; None where that is not known."""
    free = [one for one in (_free_on_machine(), _free_in_container()) if one is not None]
    return int(min(free) * MEMORY_SHARE) if free else None


def _free_on_machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = (PROC / "meminfo").read_text().splitlines()
        line = next(one for one in lines if one.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    return None


def _free_in_container() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        most = int((CGROUP / "memory.max").read_text())
        rows = (line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        files = next((int(size) for name, size in rows if name == "inactive_file"), 0)
        return most - int((CGROUP / "memory.current").read_text()) + files
    return None
