"""The machine that is measured: what it is, and training scripts run on it as jobs.

Folders and variables are as SageMaker sets them. What cannot be read of the machine is None.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 60  # for a stopped segment to save its evidence
PACKAGES = ("transformers", "diffusers", "torchao", "triton")
CARD = ("driver_version", "power.limit", "clocks.max.sm", "clocks.sm", "memory.total")
# In a process of its own: the one that measures must hold no memory on the card.
PROBE = (
    "import json, torch; gpu = torch.cuda.is_available(); print(json.dumps({"
    "'torch': torch.__version__, 'cuda': torch.version.cuda, "
    "'gpu': torch.cuda.get_device_name() if gpu else None, "
    "'gpus': torch.cuda.device_count() if gpu else 0}))"
)


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
    """Ends a process at the deadline: by SIGTERM, then by SIGKILL."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self.stopped = False
        self._process = process
        self._previous = signal.getsignal(signal.SIGALRM)
        if seconds != float("inf"):
            signal.signal(signal.SIGALRM, self._terminate)
            signal.alarm(max(1, int(seconds)))

    def _terminate(self, _signal: int, _frame: object) -> None:
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


@functools.cache
def description() -> dict[str, Any]:
    """The card, its driver, clocks and power limit, and the versions of what ran on it."""
    card = json.loads(_output([sys.executable, "-c", PROBE]) or "{}")
    return {
        "gpu": None, "gpus": 0, "torch": None, "cuda": None, **card, **_card(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _output(["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]),
        "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


def _card() -> dict[str, str | None]:
    """What nvidia-smi says of the first card, each with its unit."""
    line = _output(["nvidia-smi", f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"])
    values = [value.strip() for value in line.splitlines()[0].split(",")] if line else []
    properties = dict(zip(CARD, values, strict=False))
    return {name: properties.get(name) for name in CARD}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
