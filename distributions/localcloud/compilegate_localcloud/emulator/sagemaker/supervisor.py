"""Runs one training process and leaves nothing of it behind, however it ends.

Started as a script of its own by the emulator, standard library only. Its standard input is
a pipe from the emulator: the line ``stop SECONDS`` kills the training process after that many
seconds; the end of the pipe means the emulator is gone, and kills at once.

A stop sends no SIGTERM. StopTrainingJob signals the container's first process, which in AWS's
images is a shell that passes nothing on (sagemaker-training-toolkit issues 125 and 173,
deep-learning-containers issue 632), so the script trains on until it is killed.
One line on standard error gives the training process's id, which is also its group's; the
training process itself writes to standard output only, so the two never mix. The exit status
is the training process's, 128 + n when signal n ended it.

With ``--forked DESCRIPTOR PACKAGES`` before the command, the process comes from the fork server
(fork_server.py) at the other end of that descriptor.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
FORKED = "--forked"


class Started:
    """A process that this one has started."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.pid = self._process.pid

    def wait(self) -> int:
        """Its exit status, 128 + n when signal n ended it."""
        status = self._process.wait()
        return status if status >= 0 else 128 - status


class Forked:
    """A process that the fork server has started with this one's output."""

    def __init__(self, descriptor: int, packages: str, command: list[str]) -> None:
        connection = socket.socket(fileno=descriptor)
        request = {
            "command": command,
            "packages": packages,
            "folder": str(Path.cwd()),
            "environment": dict(os.environ),
        }
        text = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [text], [sys.stdout.fileno()])
        connection.sendall(text[sent:])
        self._answers = connection.makefile()
        self.pid = int(self._answers.readline())

    def wait(self) -> int:
        """As of one that was started; a server that is gone has left a failure."""
        answer = self._answers.readline()
        return int(answer) if answer else 1


def main(words: list[str]) -> int:
    """Run the process in a group of its own until it, or the emulator, ends."""
    forked = words[0] == FORKED
    adopt_orphans()
    process = Forked(int(words[1]), words[2], words[3:]) if forked else Started(words)
    threading.Thread(target=_obey, args=(process.pid,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # the emulator is gone: the thread sees it as well
        sys.stderr.write(f"{process.pid}\n")
        sys.stderr.flush()
    status = process.wait()
    _kill_group(process.pid)
    kill_children()
    return status


def _obey(group: int) -> None:
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["stop"]:
            timer = threading.Timer(float(words[1]), _kill_group, (group,))
            timer.daemon = True
            timer.start()
    _kill_group(group)
    with contextlib.suppress(ProcessLookupError):  # one that is just forked leads no group yet
        os.kill(group, signal.SIGKILL)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def adopt_orphans() -> None:
    """Be the parent of all that descends from this process and loses its own (Linux only)."""
    with contextlib.suppress(OSError, AttributeError):  # no C library, or not Linux's
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_children() -> None:
    """Kill what is left, whatever group or environment it has chosen, until nothing is."""
    with contextlib.suppress(PermissionError):  # another user's
        while children := [*_children()]:
            for pid in children:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def _children() -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                yield int(stat.parent.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
