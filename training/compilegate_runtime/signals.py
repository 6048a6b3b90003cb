"""SIGTERM deferred for the moment, or to a step's end.

Few scripts ever see it: AWS's images start them behind a shell that does not pass it on. It comes
from images that do, from torchrun when another process failed, and from a terminal. A killed run
keeps what it had saved by then (saving.py).
"""

import contextlib
import signal
import threading


@contextlib.contextmanager
def stopping_later():
    """Defer SIGTERM during the block, so that no step is lost between two places."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# SageMaker gives a job 120 seconds after SIGTERM; a step that takes longer than this is given up.
STEP_SECONDS = 60


class Stopping:
    """Defers SIGTERM to a step's end: ``requested`` says whether the job should end there.

    Where that does not come, the process stops as it would have done without.
    """

    def __init__(self):
        self.requested = False
        self._previous = signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _signal, _frame):
        self.requested = True
        signal.signal(signal.SIGALRM, self._previous)
        signal.alarm(STEP_SECONDS)

    def restore(self):
        """Stop at once again: no step's end is to come."""
        signal.signal(signal.SIGTERM, self._previous)
        if self.requested:
            signal.alarm(0)
            self._previous(signal.SIGTERM, None)
