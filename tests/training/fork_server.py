"""One process per worker that has imported torch, and jobs forked from it: see forked.py."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("forked.py")


class ForkServer:
    """Starts jobs one after another, each in a process of its own."""

    def __init__(self, python: Path, environment: Mapping[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(
            [python, PROGRAM], env=environment, cwd=folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def warm(self, modules: Sequence[str]) -> None:
        """Import these, unless it has."""
        self._ask(warm=list(modules))

    def start(
        self, words: Sequence[str], environment: Mapping[str, str], output: Path, **more: str
    ) -> ForkedJob:
        """Start a program with its arguments; what it prints goes to ``output``."""
        self._ask(words=list(words), environment=dict(environment), output=str(output), **more)
        return ForkedJob(words, self._process.stdout)

    def close(self) -> None:
        """End the server; no job runs then."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, **message: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")


class ForkedJob:
    """As much of subprocess.Popen as a job needs."""

    def __init__(self, words: Sequence[str], answers: Any) -> None:
        self._words, self._answers = words, answers
        self.pid = int(answers.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status once it has ended, after at most ``timeout`` seconds."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
            self.returncode = int(self._answers.readline())
        return self.returncode

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)
