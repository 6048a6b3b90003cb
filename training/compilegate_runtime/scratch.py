"""Temporary folders that do not outlive their process by more than the next start.

A killed process cannot remove its folders, and a machine that runs many jobs would fill its disk
with them. Whether the owner lives, the lock on a file beside the folder says: the kernel gives it
up with the process, whose number may be another's by then.
"""

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "compilegate-scratch-"
# Not swept yet: a folder gets its name once its lock is held.
UNLOCKED = ".compilegate-new-"
LOCK, CONTENT = "lock", "content"
_held = {}


def folder(kind):
    """A new empty folder of this process; those of processes that are gone are removed."""
    sweep()
    fresh = Path(tempfile.mkdtemp(prefix=UNLOCKED))
    (fresh / CONTENT).mkdir()
    lock = os.open(str(fresh / LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: then nobody else gets it
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    own = fresh.with_name(PREFIX + kind + "-" + fresh.name[len(UNLOCKED) :])
    fresh.rename(own)
    _held[own / CONTENT] = lock
    return own / CONTENT


def result_folder(kind):
    """Such a folder that stays where its process ends by itself, because a person may want it."""
    own = folder(kind)
    atexit.register(_keep, own.parent, os.getpid())
    return own


def _keep(place, process):
    """A folder without a lock is never swept."""
    if os.getpid() == process:  # a forked one's end is not the run's
        with contextlib.suppress(OSError):
            (place / LOCK).unlink()


@contextlib.contextmanager
def held(kind):
    """Such a folder for as long as the context lasts."""
    own = folder(kind)
    try:
        yield own
    finally:
        _remove(own.parent)
        os.close(_held.pop(own))


def sweep():
    """Remove the folders of processes that are gone."""
    for place in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            if not _is_own(place.lstat()):
                continue
            lock = os.open(str(place / LOCK), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # it is just being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(place)
        except OSError:
            continue  # its process lives
        finally:
            os.close(lock)


def _is_own(status):
    """Whether it is a folder of this user, and no link to another one."""
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _remove(place):
    """The lock goes last, so that what is left of a removal that was cut short is swept, too."""
    shutil.rmtree(str(place / CONTENT), ignore_errors=True)
    shutil.rmtree(str(place), ignore_errors=True)
