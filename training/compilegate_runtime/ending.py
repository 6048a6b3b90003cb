"""How a process whose run is complete comes through the equivalence check, and to its end.

The check may end the process at once: by a lack of memory, or where it hangs. What an interpreter
does at its end is therefore done before, except for functions registered with ``atexit``.
"""

import concurrent.futures.thread as pools
import contextlib
import os
import signal
import sys
import threading
import time

from compilegate_runtime import compile_cache
from compilegate_runtime.equivalence.unseen import Unseen

HUNG_SECONDS = 60.0  # beyond the limit, after which a check hangs
THREADS_SECONDS = 600.0  # that a script's threads may take, to upload its model for instance
LOOK_EVERY_SECONDS = 0.05


def complete():
    """Wait for what a script's own threads still do; keep what was compiled and printed."""
    limit = time.monotonic() + THREADS_SECONDS
    while any(map(_is_at_work, threading.enumerate())) and time.monotonic() < limit:
        time.sleep(LOOK_EVERY_SECONDS)
    compile_cache.keep()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _is_at_work(thread):
    """Whether the interpreter waits for it; a pool's thread is at work in a call alone.

    The thread that manages a pool of processes holds the calls that have not returned.
    """
    if thread.daemon or thread in (threading.main_thread(), threading.current_thread()):
        return False
    if not getattr(thread, "pending_work_items", True):
        return False
    frame = sys._current_frames().get(thread.ident)
    return frame is None or frame.f_code is not pools._worker.__code__


@contextlib.contextmanager
def ending_well():
    """End the process with 0 where it is stopped in the block.

    The run that the block comes after is complete, and its evidence is written: nothing is left to
    be run again.
    """

    def stopped(_signal, _frame):
        raise SystemExit(0)

    with _handled(signal.SIGTERM, stopped):
        yield


@contextlib.contextmanager
def ending_within(seconds):
    """Raise Unseen in the block when its time is over; where it hangs, end the process with 0.

    One of several processes hangs where another has left a collective operation.
    """

    def over(_signal, _frame):
        raise Unseen("time_exceeded", f"{seconds:.0f} seconds")

    watch = threading.Timer(seconds + HUNG_SECONDS, os._exit, [0])
    watch.daemon = True
    with _handled(signal.SIGALRM, over):
        watch.start()
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            watch.cancel()


@contextlib.contextmanager
def _handled(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL if before is None else before)
