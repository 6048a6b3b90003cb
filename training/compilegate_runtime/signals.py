"""Signals that stop a job, put off for the moment."""

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
