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
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

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
    process = Forked(int(words[1]), words[2], words[3:]) if forked else Started(words)
    threading.Thread(target=_obey, args=(process.pid,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # the emulator is gone: the thread sees it as well
        sys.stderr.write(f"{process.pid}\n")
        sys.stderr.flush()
    status = process.wait()
    _kill_group(process.pid)
    _kill_marked(os.environ.get("COMPILEGATE_LOCAL_JOB", ""))
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


def _kill_marked(job: str) -> None:
    """Kill what left the group, found by the job's name in its environment (Linux only)."""
    marker = f"COMPILEGATE_LOCAL_JOB={job}".encode()
    run = f"COMPILEGATE_LOCAL_RUN={os.environ.get('COMPILEGATE_LOCAL_RUN', '')}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        pid = int(entry.parent.name)
        with contextlib.suppress(OSError):
            variables = entry.read_bytes().split(b"\0")
            if job and marker in variables and run in variables and pid != os.getpid():
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
