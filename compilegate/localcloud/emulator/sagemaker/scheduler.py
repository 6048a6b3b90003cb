"""Which training jobs run at the same time on this machine.

A cloud gives each job its own instances. Here jobs share one machine: a job that measures
speed gets it for itself, others run side by side, one thread each.
"""

from __future__ import annotations

import threading
from collections import deque

from compilegate.localcloud.emulator.sagemaker.job import TrainingJob


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
        """Let waiting jobs see that they were asked to stop."""
        with self._changed:
            self._changed.notify_all()

    def _may_start(self, job: TrainingJob) -> bool:
        if not self._waiting or self._waiting[0] is not job or job.stopping.is_set():
            return False
        if job.exclusive:
            return not self._running
        alone = any(other.exclusive for other in self._running)
        return not alone and len(self._running) < self.slots

    @staticmethod
    def _announce_wait(job: TrainingJob) -> None:
        if job.describe()["SecondaryStatus"] != "Pending":
            job.enter("Pending", "Waiting for the machine: other training jobs are running")
