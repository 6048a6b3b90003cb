"""A training process under its supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_ABANDON_SECONDS = 2.0
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


class TrainingProcess:
    """The process, its output line by line, and the ways to end it."""

    def __init__(
        self,
        command: list[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
    ) -> None:
        # -I -S: the supervisor needs nothing but the standard library and starts in 15 ms.
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=descriptors,
        )
        self._write_lock = threading.Lock()
        first = self._supervisor.stderr.readline() if self._supervisor.stderr else b""
        self.pid = int(first) if first.strip().isdigit() else None

    def run(self, on_line: Callable[[str], None]) -> int:
        """Hand over every line of output until the process ends; returns its exit status.

        A status above 128 means signal ``status - 128`` ended it.
        """
        reader = threading.Thread(target=self._read, args=(on_line,), daemon=True)
        reader.start()
        status = self._supervisor.wait()
        if status < 0 and self.pid is not None:  # the supervisor itself was killed
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        # Whoever still holds the pipe was killed above; a moment is enough to read the rest.
        reader.join(timeout=5)
        return status if status >= 0 else 128 - status

    def stop(self, grace_seconds: float) -> None:
        """Kill the process when the grace is over; it is not told before (see supervisor.py)."""
        self._command(f"stop {grace_seconds}\n")

    def abandon(self) -> None:
        """End the process and all it started, now, and wait for that."""
        with self._write_lock, contextlib.suppress(BrokenPipeError, ValueError):
            if self._supervisor.stdin is not None:
                self._supervisor.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(timeout=_ABANDON_SECONDS)

    def kill(self) -> None:
        """End the training process at once, as a machine that runs out of memory would."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _command(self, line: str) -> None:
        with self._write_lock, contextlib.suppress(BrokenPipeError, ValueError):
            if self._supervisor.stdin is not None:
                self._supervisor.stdin.write(line.encode())
                self._supervisor.stdin.flush()

    def _read(self, on_line: Callable[[str], None]) -> None:
        for line in self._supervisor.stdout or ():
            on_line(line.decode("utf-8", "replace").rstrip("\r\n"))
