"""Lambda workers that are forked from one process, which has imported the SDK (template.py).

The SDK is half of a worker's start. Only on Linux; elsewhere, and for code that brings an SDK of
its own, ministack starts an interpreter for each worker.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilegate.localcloud.emulator.replacements import replace

log = logging.getLogger("compilegate.workers")
LAMBDA_SITE = Path(__file__).with_name("lambda_site")
# Says to lambda_site/sitecustomize.py that the process is to fork, which threads forbid.
_TEMPLATE = "COMPILEGATE_LAMBDA_TEMPLATE"
_SUBPROCESS = "ministack.core.lambda_runtime.subprocess"
_LONGEST_ANSWER = 64


class _Worker:
    """What ministack uses of a Popen, for a process that is another's child."""

    def __init__(self, process: int, streams: tuple[int, int, int]) -> None:
        self._process = process  # a descriptor, which no other process can come to have
        self.stdin = os.fdopen(streams[0], "w", buffering=1)
        self.stdout, self.stderr = os.fdopen(streams[1]), os.fdopen(streams[2])

    def poll(self) -> int | None:
        """None while it runs; its status is the template's to know."""
        return 0 if self._ended(0) else None

    def wait(self, timeout: float) -> None:
        """Return once it has ended; raises TimeoutExpired."""
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired("worker", timeout)

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def __del__(self) -> None:
        """Nobody asks any more."""
        os.close(self._process)

    def _ended(self, seconds: float) -> bool:
        waiting = select.poll()  # select takes no descriptor above 1023
        waiting.register(self._process, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)


class _Template:
    """The process to fork from, started with the first worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: list[str], *, cwd: str, env: Mapping[str, str], **named: Any) -> Any:
        """In place of ``subprocess.Popen``."""
        if command[0] == sys.executable and not (Path(cwd) / "botocore").exists():
            try:
                return self._fork(command[1], cwd, env)
            except (OSError, ValueError):
                log.exception("a worker starts without the template")
        return subprocess.Popen(command, cwd=cwd, env=env, **named)

    def close(self) -> None:
        """End it, if it was started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _fork(self, program: str, folder: str, environment: Mapping[str, str]) -> _Worker:
        request = {"program": program, "folder": folder, "environment": dict(environment)}
        (its_input, stdin), (stdout, output), (stderr, errors) = (os.pipe() for _ in range(3))
        try:
            with self._lock:
                requests = self._running()
                message = json.dumps(request).encode()
                socket.send_fds(requests, [message], [its_input, output, errors])
                answer = requests.recv(_LONGEST_ANSWER)
            # No answer, no number: the template is gone.
            return _Worker(os.pidfd_open(int(answer)), (stdin, stdout, stderr))
        except (OSError, ValueError):
            for own in (stdin, stdout, stderr):
                os.close(own)
            raise
        finally:
            for workers_own in (its_input, output, errors):
                os.close(workers_own)

    def _running(self) -> socket.socket:
        if self._requests is None:
            # Whole messages: a request is one, however long.
            self._requests, templates = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with templates:
                self._process = subprocess.Popen(
                    [sys.executable, str(LAMBDA_SITE / "template.py")],
                    env={**os.environ, _TEMPLATE: "1"},
                    stdin=templates.fileno(),
                    stdout=subprocess.DEVNULL,
                )
        return self._requests


_template = _Template()


def install() -> None:
    """Let ministack start workers here."""
    if sys.platform == "linux":
        own = {**vars(subprocess), "Popen": _template.start}
        replace(_SUBPROCESS, types.SimpleNamespace(**own))


def close() -> None:
    """End the process that workers are forked from, and with it the workers."""
    _template.close()
