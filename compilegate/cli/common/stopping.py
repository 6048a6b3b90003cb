"""Ctrl-C and the signals that are handled like it: once, so that cleaning up is not cut off."""

from __future__ import annotations

import time
from types import FrameType

# A person who presses again after this time wants an end to what still goes on.
REPEATED_SECONDS = 5.0


class Stop:
    """A handler of signals: the first stops the command, those that follow at once do nothing.

    A key that is held down, or a runner that signals again, would interrupt what ends the trials
    and keeps their records.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless that was done just now."""
        now = time.monotonic()
        if self._since is None or now - self._since > REPEATED_SECONDS:
            self._since = now
            raise KeyboardInterrupt
