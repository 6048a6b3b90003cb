"""Who uses a local cloud: the last one out ends it, however the others ended.

A user holds a shared lock on a file of its folder, which the system takes back when the process
ends. Users come and go, and the emulator looks, under the lock of those that start or end the
emulator; so nobody joins one that is about to end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import IO

ALONE, USERS = "lock", "users.lock"
_POLL_SECONDS = 0.5


class Users:
    """The users of the local cloud of a folder, as one of them sees them."""

    def __init__(self, home: Path) -> None:
        self._path = home / USERS
        self._held: IO[str] | None = None

    @property
    def joined(self) -> bool:
        """Whether this is one of them."""
        return self._held is not None

    def join(self) -> None:
        """Be one of them until ``leave``, or until this process ends."""
        if self._held is None:
            self._held = self._path.open("a")
            fcntl.flock(self._held, fcntl.LOCK_SH)

    def leave(self) -> bool:
        """Be none of them any more; whether nobody else is."""
        if self._held is None:
            return False
        with self._held as held:
            self._held = None
            return _taken(held.fileno())


def wait_until_unused(home: Path) -> None:
    """Return once nobody uses the cloud; nobody can join from then on until this process ends."""
    alone, users = (os.open(home / name, os.O_RDWR | os.O_CREAT, 0o600) for name in (ALONE, USERS))
    while True:
        time.sleep(_POLL_SECONDS)
        if not _taken(alone):  # somebody starts or ends it
            continue
        if _taken(users):
            return
        fcntl.flock(alone, fcntl.LOCK_UN)


def _taken(descriptor: int) -> bool:
    """Take the lock for this process alone, if nobody else has it."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
