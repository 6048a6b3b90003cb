"""Training processes: each under its supervisor, forked from one server where that is safe."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compilegate_localcloud.emulator.sagemaker.container import Command, inherited
from compilegate_localcloud.emulator.sagemaker.supervisor import FORKED
from compilegate_localcloud.emulator.settings import Settings

_ABANDON_SECONDS = 2.0
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_FORK_SERVER = Path(__file__).with_name("fork_server.py")


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
        # Every process that held the pipe was killed above; a moment is enough to read the rest.
        reader.join(timeout=5)
        return status if status >= 0 else 128 - status

    def stop(self, grace_seconds: float) -> None:
        """Kill the process after the grace period, without a signal before (see supervisor.py)."""
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


class ForkServer:
    """One server for all jobs, started with the first one and again if it died.

    Only where forking a process with this many libraries is safe, which is Linux; elsewhere every
    job starts a process of its own.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._lock = settings, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._jobs: socket.socket | None = None

    def prepare(self) -> None:
        """Let the server import what jobs need, before the first one needs it."""
        if sys.platform == "linux":
            with self._lock:
                self._running()

    def start(
        self, command: Command, *, folder: Path, environment: Mapping[str, str]
    ) -> TrainingProcess:
        """Start the toolkit of one job in its folder."""
        words = [str(command.interpreter.python), str(command.program)]
        if sys.platform != "linux":
            return TrainingProcess(words, folder=folder, environment=environment)
        with self._connection() as connection:
            return TrainingProcess(
                [FORKED, str(connection.fileno()), str(command.interpreter.packages), *words],
                folder=folder,
                environment=environment,
                descriptors=(connection.fileno(),),
            )

    def close(self) -> None:
        """End the server, now; the jobs that it started have supervisors of their own."""
        with self._lock:
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _connection(self) -> socket.socket:
        own, servers = socket.socketpair()
        with self._lock, servers:
            socket.send_fds(self._running(), [b"j"], [servers.fileno()])
        return own

    def _running(self) -> socket.socket:
        if self._jobs is None or self._process is None or self._process.poll() is not None:
            self._jobs, servers = socket.socketpair()
            with servers:
                self._process = subprocess.Popen(
                    [str(self._settings.job_python), str(_FORK_SERVER)],
                    stdin=servers.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=inherited(self._settings),
                    start_new_session=True,
                )
        return self._jobs
