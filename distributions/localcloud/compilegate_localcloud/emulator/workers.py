"""Lambda workers that are forked from one process, which has imported the SDK (template.py).

The SDK is half of a worker's start. Only on Linux; elsewhere, for code that brings its own of what
that process has imported, and for functions with layers or variables of the interpreter, ministack
starts an interpreter for each worker. Forked workers have one seed of hashes.
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

from compilegate_localcloud.emulator.replacements import replace

log = logging.getLogger("compilegate.workers")
LAMBDA_SITE = Path(__file__).with_name("lambda_site")
# Says to lambda_site/sitecustomize.py that the process is to fork, which threads forbid.
_TEMPLATE = "COMPILEGATE_LAMBDA_TEMPLATE"
_SUBPROCESS = "ministack.core.lambda_runtime.subprocess"
_LAYERS = "_LAMBDA_LAYERS_DIRS"  # ministack's variable for a worker
# Bytes; AWS allows a function 4 kB of variables, a message of a socket may have some 200 kB.
_LONGEST_REQUEST = 1 << 17
_LONGEST_ANSWER = 64
_ANSWER_SECONDS = 30.0


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
        """Close the descriptor, which no caller holds any more."""
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
        request = {"program": command[1], "folder": cwd, "environment": dict(env)}
        message = json.dumps(request).encode()
        if (
            command[0] == sys.executable
            and len(message) < _LONGEST_REQUEST
            and not _needs_interpreter(env)
        ):
            try:
                if (worker := self._forked(message)) is not None:
                    return worker
            except OSError:
                log.exception("a worker starts without the template")
        return subprocess.Popen(command, cwd=cwd, env=env, **named)

    def close(self) -> None:
        """End it, if it was started."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _forked(self, message: bytes) -> _Worker | None:
        """None where the template has imported what the code brings; raises OSError without it."""
        (its_input, stdin), (stdout, output), (stderr, errors) = (os.pipe() for _ in range(3))
        process = None
        try:
            answer = self._answer(message, [its_input, output, errors])
            if answer.isdigit():
                process = os.pidfd_open(int(answer))
        finally:
            unused = [stdin, stdout, stderr] if process is None else []
            for descriptor in (its_input, output, errors, *unused):
                os.close(descriptor)
        return None if process is None else _Worker(process, (stdin, stdout, stderr))

    def _answer(self, message: bytes, streams: list[int]) -> bytes:
        """What the template says; one that says nothing is ended, the next call starts another."""
        with self._lock:
            requests = self._running()
            try:
                socket.send_fds(requests, [message], streams)
                answer = requests.recv(_LONGEST_ANSWER)
            except OSError:
                self.close()
                raise
            if not answer:
                self.close()
                raise ConnectionResetError("the template has ended")
            return answer

    def _running(self) -> socket.socket:
        if self._requests is None:
            # Each message is whole: a request, or its answer.
            self._requests, templates = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._requests.settimeout(_ANSWER_SECONDS)
            # Without the account's keys, which a function could read of the process it comes from.
            kept = {key: text for key, text in os.environ.items() if not key.startswith("AWS_")}
            with templates:
                self._process = subprocess.Popen(
                    [sys.executable, str(LAMBDA_SITE / "template.py")],
                    env={**kept, _TEMPLATE: "1"},
                    stdin=templates.fileno(),
                    stdout=subprocess.DEVNULL,
                )
        return self._requests


def _needs_interpreter(environment: Mapping[str, str]) -> bool:
    """Whether a function has layers or variables that an interpreter reads as it starts."""
    own = {name for name in {*environment, *os.environ} if name.startswith("PYTHON")}
    return _LAYERS in environment or any(
        environment.get(name) != os.environ.get(name) for name in own
    )


_template = _Template()


def install() -> None:
    """Let ministack start workers here."""
    # Some builds of Python for Linux lack these two.
    handles = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")
    if sys.platform == "linux" and handles:
        own = {**vars(subprocess), "Popen": _template.start}
        replace(_SUBPROCESS, types.SimpleNamespace(**own))


def close() -> None:
    """End the process that workers are forked from, and with it the workers."""
    _template.close()
