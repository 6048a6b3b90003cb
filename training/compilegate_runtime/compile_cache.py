"""Keeps torch.compile's cache between jobs, outside of the folder that SageMaker copies.

SageMaker copies a job's checkpoint folder to S3 while the job runs, on every host of it. A cache in
that folder would be copied during timed steps, with files that are only half written. So the cache
lies in a local folder: ``restore`` fills it from the checkpoint folder at the start, ``keep``
copies what is new back at the end, once, in the first process only. A job that is killed keeps
nothing of its own.

Inductor names almost every file by its contents, so jobs that run at the same time may keep theirs
in one place. A file is copied under a temporary name and then renamed: it is whole, or not there.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from compilegate_runtime import environment
from compilegate_runtime.progress import write_line

KEPT = "COMPILEGATE_COMPILE_CACHE"  # in the checkpoint folder
# The digest of the bundle (compile_bundle.py) that a flag names, and where bundles lie.
BUNDLE, BUNDLES = "COMPILEGATE_COMPILE_BUNDLE", "COMPILEGATE_COMPILE_BUNDLES"
LOCAL = "TORCHINDUCTOR_CACHE_DIR"
PARTIAL = ".compilegate-partial"
NOT_KEPT = (".lock", ".tmp", PARTIAL)  # of processes that are at work in the folder


def restore():
    """Let this process compile into a local folder that holds what earlier jobs kept.

    The first process of a machine copies, the others wait for it. Without a place for it the
    compiler's cache stays where it is. A job that is to restore a bundle begins with an empty
    folder: what else was kept is not what its flag names.
    """
    kept = os.environ.get(KEPT)
    if not kept:
        return
    local = _local_folder()
    os.environ[LOCAL] = str(local)
    local.mkdir(parents=True, exist_ok=True)
    if bundle_asked_for():
        return
    restored = local.with_name("restored")
    with local.with_name("restoring").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not restored.exists():
            _report("restored", copy_changed(Path(kept), local))
            restored.touch()


def keep():
    """Copy what this job compiled to where the next job's ``restore`` looks for it."""
    kept = os.environ.get(KEPT)
    if kept and environment.rank() == 0:
        _report("kept", copy_changed(_local_folder(), Path(kept)))


@contextlib.contextmanager
def preserved():
    """Restore the cache, and keep it when the block ends, however it ends."""
    restore()
    try:
        yield
    finally:
        keep()


def without_place(variables):
    """The variables for a process whose cache another process restores and keeps."""
    place = bundles()
    own = {BUNDLES: str(place)} if place else {}
    return {**{name: value for name, value in variables.items() if name != KEPT}, **own}


def bundle_asked_for():
    """The digest of the bundle that this job is to restore, None where its flag names none."""
    return os.environ.get(BUNDLE) or None


def bundles():
    """The folder of bundles, beside what is kept; None where a job keeps nothing for others."""
    place, kept = os.environ.get(BUNDLES), os.environ.get(KEPT)
    if place:
        return Path(place)
    return Path(kept).parent / "bundles" if kept else None


def _local_folder():
    return Path(tempfile.gettempdir()) / "compilegate" / "inductor"


def _report(done, count):
    if count:
        write_line(f"compilegate compile_cache={done} files={count}")


def copy_changed(source, target):
    """Copy every file that ``target`` lacks or has otherwise; returns how many.

    A disk that is full, or a file that is gone, costs a compilation later and must not fail a job.
    """
    count = 0
    try:
        for path in sorted(source.rglob("*")):
            name = path.relative_to(source)
            if path.name.endswith(NOT_KEPT) or path.is_symlink() or not path.is_file():
                continue
            if not _same(path, target / name):
                _copy(path, target / name)
                count += 1
    except OSError as error:
        write_line(f"compilegate compile_cache=incomplete reason={error}")
    return count


def _same(path, other):
    try:
        ours, theirs = path.stat(), other.stat()
    except FileNotFoundError:
        return False
    return (ours.st_size, ours.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)


def _copy(path, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + PARTIAL)
    shutil.copy2(str(path), str(partial))
    partial.replace(target)
