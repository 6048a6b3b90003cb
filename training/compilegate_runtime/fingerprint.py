"""What a run was made of; arms whose fingerprints differ in more than the change are invalid."""

import hashlib
import os
import platform
import sys
from pathlib import Path

from compilegate_runtime import environment
from compilegate_runtime.data_schema import data_schema_digest

# Larger files are identified by their size, first and last megabyte: a channel of terabytes
# must not delay the first step by hours.
WHOLE_FILE_BYTES = 64 * 2**20
EDGE_BYTES = 2**20
RUNTIME = "compilegate_runtime"


def fingerprint(device, settings, source=None):
    """Everything that must be equal in both arms, the treatment left out.

    ``source`` is the folder of the code, that of the script that was started unless given.
    """
    found = {
        "gpu": device.name if device.is_gpu else f"CPU {processor()}",
        "driver": _driver(),
        "torch": device.torch_version,
        "cuda": device.cuda_version,
        "image": os.environ.get("COMPILEGATE_IMAGE"),
        "code_sha256": code_digest(source or Path(sys.argv[0]).resolve().parent),
        "data_sha256": data_digest(environment.channels()),
        "data_schema_sha256": data_schema_digest(environment.channels()),
        "precision": settings.precision,
        "world_size": environment.world_size(),
        "global_batch": settings.batch_size * environment.world_size() or None,
    }
    if not device.is_gpu:
        found["threads"] = device.threads
    return found


def code_digest(folder):
    """SHA-256 over the names and contents of every Python file under the source folder.

    But the recorder's own, which comes along and is no part of what the team trains.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if RUNTIME in path.relative_to(folder).parts:
            continue
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


def data_digest(folders):
    """SHA-256 over the files of all channels; None for a job without input."""
    digest = hashlib.sha256()
    for name, folder in sorted(folders.items()):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\0".encode())
            _add_file(digest, path)
    return digest.hexdigest() if folders else None


def file_digest(path):
    """SHA-256 of one file, a large one's by its size and edges."""
    digest = hashlib.sha256()
    _add_file(digest, path)
    return digest.hexdigest()


def _add_file(digest, path):
    size = path.stat().st_size
    digest.update(str(size).encode() + b"\0")
    with path.open("rb") as file:
        if size <= WHOLE_FILE_BYTES:
            for piece in iter(lambda: file.read(EDGE_BYTES), b""):
                digest.update(piece)
            return
        digest.update(file.read(EDGE_BYTES))
        file.seek(-EDGE_BYTES, os.SEEK_END)
        digest.update(file.read(EDGE_BYTES))


def processor():
    """Model name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _driver():
    try:
        first = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    words = first.split("Kernel Module", 1)[-1].split()
    return next((word for word in words if word[:1].isdigit()), first)
