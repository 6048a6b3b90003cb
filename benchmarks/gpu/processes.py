"""Starts training scripts as jobs: folders and variables as SageMaker sets them, and a deadline."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 60  # for a stopped segment to save its evidence


@dataclass(frozen=True)
class Machine:
    """Where this measurement keeps its files, and until when it may start and run jobs."""

    state: Path
    deadline: float = float("inf")  # of time.monotonic
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float:
        """Until the deadline; infinite where there is none."""
        return self.deadline - time.monotonic()

    @property
    def training(self) -> Path:
        """The training code that everything here is measured with."""
        return self.state.resolve() / "training"

    def prepare(self) -> None:
        """Copy the training code and write the channels, unless an earlier call did.

        All blocks are to be of one code, whatever is edited between two calls.
        """
        if not self.training.is_dir():
            junk = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / "training", self.training, ignore=junk)
        if not (self.state / "data" / "docstrings").is_dir():
            program = str(self.training / "prepare_data.py")
            subprocess.run([sys.executable, program, str(self.state / "data")], check=True)

    def has(self, data: str) -> bool:
        """Whether the channels of that name could be written."""
        return (self.state / "data" / data / "train").is_dir()

    def job(self, output: Path, data: str, name: str) -> dict[str, str]:
        """The environment of a training job that leaves its output in ``output``."""
        channels = self.state.resolve() / "data" / data
        return {
            **os.environ,
            "SM_OUTPUT_DATA_DIR": str(output.resolve()),
            "SM_OUTPUT_FAILURE": str(output.resolve() / "failure"),
            "SM_CHANNEL_TRAIN": str(channels / "train"),
            "SM_CHANNEL_VALIDATION": str(channels / "validation"),
            "TRAINING_JOB_NAME": name,
            # A workload's own, so that its first compilation is a cold one.
            "TORCHINDUCTOR_CACHE_DIR": str(output.resolve().parent / "compile-cache"),
            **self.variables,
        }

    def run(
        self,
        command: Sequence[str],
        variables: dict[str, str],
        log: Path,
        each_line: Callable[[str], None] = lambda _: None,
    ) -> int | None:
        """Run to the end or the deadline; returns the exit code, None when it was stopped."""
        log.parent.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, *command],
            env=variables,
            cwd=self.training,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        stop = _Stop(process, self.seconds_left)
        try:
            with log.open("a") as file:
                for line in process.stdout or ():
                    file.write(line)
                    file.flush()
                    each_line(line.rstrip())
            status = process.wait()
        finally:
            stop.cancel()
        return None if stop.stopped else status


class _Stop:
    """Ends a process at the deadline: asked first, killed when it does not follow."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self.stopped = False
        self._process = process
        self._previous = signal.getsignal(signal.SIGALRM)
        if seconds != float("inf"):
            signal.signal(signal.SIGALRM, self._ask)
            signal.alarm(max(1, int(seconds)))

    def _ask(self, _signal: int, _frame: object) -> None:
        self.stopped = True
        self._process.terminate()
        signal.signal(signal.SIGALRM, self._kill)
        signal.alarm(GRACE_SECONDS)

    def _kill(self, _signal: int, _frame: object) -> None:
        self._process.kill()

    def cancel(self) -> None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self._previous)
        if self._process.poll() is None:  # this measurement itself is being ended
            self._process.terminate()
            self._process.wait()
