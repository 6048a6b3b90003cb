"""Signals that stop a job, put off for the moment or to a step's end.

Few scripts ever see one: AWS's images start them behind a shell that passes no SIGTERM on. It comes
from images that do, from torchrun when another process failed, and from people at a terminal. What
a run keeps when it is killed is what it had saved by then (save_schedule.py).
"""

import contextlib
import signal
import threading


@contextlib.contextmanager
def stopping_later():
    """Put off SIGTERM for the moment, so that no step is lost between two places."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# SageMaker gives a job 120 seconds after SIGTERM; a step that takes longer than this is given up.
PATIENCE_SECONDS = 60


class Stopping:
    """Puts SIGTERM off to a step's end: ``requested`` says whether the job should end there.

    Where that does not come, the process stops as it would have done at once.
    """

    def __init__(self):
        self.requested = False
        self._at_once = signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _signal, _frame):
        self.requested = True
        signal.signal(signal.SIGALRM, self._at_once)
        signal.alarm(PATIENCE_SECONDS)

    def at_once_again(self):
        """No step's end is to come."""
        signal.signal(signal.SIGTERM, self._at_once)
        if self.requested:
            signal.alarm(0)
            self._at_once(signal.SIGTERM, None)
