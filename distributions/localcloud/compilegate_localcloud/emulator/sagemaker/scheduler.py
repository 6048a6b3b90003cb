"""Which training jobs run at the same time on this machine.

A cloud gives each job its own instances. Here jobs share one machine, and each trains on one
core. A job that measures speed has half of the machine, so that two workloads can be measured at
once and neither waits for a core: the arms of a block run one after the other in the same job, and
what remains of their neighbour is part of the spread over blocks. Where the machine has GPUs, every
job may use all of them, and jobs run one at a time: two on one GPU would share its memory and time.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque

from compilegate_localcloud.emulator.sagemaker.job import TrainingJob

MOST_MEASURING_CORES = 4


def measuring_cores(slots: int) -> int:
    """Cores of a job that measures speed: it trains on one and compiles on all of them."""
    return max(1, min(MOST_MEASURING_CORES, slots // 2))


def has_gpu() -> bool:
    """Whether jobs can use an NVIDIA GPU here: the driver lists one, and it is not hidden."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    try:
        listed = subprocess.run(  # the driver's own program, wherever it is installed
            ["nvidia-smi", "--list-gpus"],  # noqa: S607
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return "GPU " in listed.stdout


def slots_for(cores: int) -> int:
    """Jobs of one core that may run side by side: as many as cores, one where a GPU is used."""
    return 1 if has_gpu() else cores


class Scheduler:
    """First come, first served: only the job at the head may start, so none starves."""

    def __init__(self, slots: int) -> None:
        self.slots = max(1, slots)
        self._changed = threading.Condition()
        self._waiting: deque[TrainingJob] = deque()
        self._running: set[TrainingJob] = set()

    def acquire(self, job: TrainingJob) -> bool:
        """Wait for the job's turn; False if it was stopped while it waited."""
        with self._changed:
            self._waiting.append(job)
            while not self._may_start(job):
                if not job.stopping.is_set():
                    self._announce_wait(job)
                    self._changed.wait()
                if job.stopping.is_set():
                    self._waiting.remove(job)
                    self._changed.notify_all()
                    return False
            self._waiting.popleft()
            self._running.add(job)
            self._changed.notify_all()
            return True

    def release(self, job: TrainingJob) -> None:
        """The job has left the machine."""
        with self._changed:
            self._running.discard(job)
            self._changed.notify_all()

    def wake(self) -> None:
        """Let waiting jobs see a request to stop."""
        with self._changed:
            self._changed.notify_all()

    def _may_start(self, job: TrainingJob) -> bool:
        if not self._waiting or self._waiting[0] is not job or job.stopping.is_set():
            return False
        return sum(map(self._cores, self._running)) + self._cores(job) <= self.slots

    def _cores(self, job: TrainingJob) -> int:
        return measuring_cores(self.slots) if job.measures_speed else 1

    @staticmethod
    def _announce_wait(job: TrainingJob) -> None:
        if job.describe()["SecondaryStatus"] != "Pending":
            job.enter("Pending", "Waiting for the machine: other training jobs are running")
