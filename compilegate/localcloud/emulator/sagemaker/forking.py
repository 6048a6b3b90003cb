"""The emulator's end of the fork server, which starts training jobs' toolkits."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from compilegate.localcloud.emulator.sagemaker.process import TrainingProcess
from compilegate.localcloud.emulator.sagemaker.supervisor import FORKED
from compilegate.localcloud.emulator.sagemaker.toolkit import Command, inherited
from compilegate.localcloud.emulator.settings import Settings

_SERVER = Path(__file__).with_name("fork_server.py")


class ForkServer:
    """One server for all jobs, started when the first one is asked for; started again if it died.

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
                    [str(self._settings.job_python), str(_SERVER)],
                    stdin=servers.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=inherited(self._settings),
                    start_new_session=True,
                )
        return self._jobs
