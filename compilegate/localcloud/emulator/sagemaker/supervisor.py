"""Runs one training process and leaves nothing of it behind, whatever happens.

Started as a script of its own by the emulator, standard library only. Its standard input is
a pipe from the emulator: the line ``stop SECONDS`` kills the training process after that many
seconds; the end of the pipe means the emulator is gone, and kills at once.

A stop sends no SIGTERM. StopTrainingJob signals the container's first process, which in AWS's
images is a shell that passes nothing on (sagemaker-training-toolkit issues 125 and 173,
deep-learning-containers issue 632), so the script trains on until it is killed.
One line on standard error tells the training process's id, which is also its group's; the
training process itself writes to standard output only, so the two never mix. The exit status
is the training process's, 128 + n when signal n ended it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path


def main(command: list[str]) -> int:
    """Run the command in a process group of its own until it, or the emulator, ends."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True
    )
    sys.stderr.write(f"{process.pid}\n")
    sys.stderr.flush()
    threading.Thread(target=_obey, args=(process,), daemon=True).start()
    status = process.wait()
    _kill_group(process.pid)
    _kill_marked(os.environ.get("COMPILEGATE_LOCAL_JOB", ""))
    return status if status >= 0 else 128 - status


def _obey(process: subprocess.Popen[bytes]) -> None:
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["stop"]:
            timer = threading.Timer(float(words[1]), _kill_group, (process.pid,))
            timer.daemon = True
            timer.start()
    _kill_group(process.pid)


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
