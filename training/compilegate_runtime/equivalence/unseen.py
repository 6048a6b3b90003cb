"""What could not be looked at, by name; and the time that a check may take."""

import math
import time


class Unseen(Exception):  # noqa: N818 - no error: something is left out, and said
    """A part, or ``share`` of it (0 to 1), was not looked at, for a reason by its ``code``."""

    def __init__(self, code, detail="", share=1.0):
        super().__init__(detail or code)
        self.code, self.detail, self.share = code, str(detail)[:300], share


class Clock:
    """The time that is left; asked between parts, steps and, in the reference, operators."""

    def __init__(self, limit_seconds):
        self._begin, self._limit = time.monotonic(), limit_seconds

    def seconds(self):
        """Seconds since the check began."""
        return time.monotonic() - self._begin

    def is_over(self):
        """Whether no time is left."""
        return self.seconds() > self._limit

    def release(self):
        """Limit nothing from here on: processes that wait for each other have to go on together."""
        self._limit = math.inf

    def check(self):
        """Raise Unseen when the time is over."""
        if self.is_over():
            raise Unseen("time_exceeded", f"{self._limit:.0f} seconds")


def reason_of(error):
    """An exception as what it left unseen."""
    if isinstance(error, Unseen):
        return error
    # By name and words: torch.OutOfMemoryError is younger than PyTorch 2.6's ancestors.
    if type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower():
        return Unseen("out_of_memory", error)
    return Unseen("failed", f"{type(error).__name__}: {error}")
