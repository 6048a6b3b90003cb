"""The source bundle of a workload: the same files make the same bytes on every machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.naming import LAUNCHER, RUNTIME_PACKAGE
from compilegate.place import PROJECT
from compilegate.usecases.registration import InputFile, Package

RUNTIME = PROJECT / "training" / RUNTIME_PACKAGE
SKIPPED_FOLDERS = ("__pycache__",)
SKIPPED_SUFFIXES = (".pyc", ".pyo")
DIGEST_LENGTH = 12


@dataclass(frozen=True)
class Bundle:
    """A ``sourcedir.tar.gz``; ``digest`` is of its contents, before compression.

    ``code_digest`` is of the team's own part of it: a newer recorder does not change their code.
    """

    body: bytes
    digest: str
    code_digest: str
    names: tuple[str, ...]


def make_bundle(source_dir: Path, *, runtime: Path = RUNTIME) -> Bundle:
    """The source folder at the root, with recorder and launcher unless they are in there.

    Raises EnvironmentNotReadyError when the recorder is not where it is installed, and
    InvalidInputError for a link to what lies outside the folder, which would be uploaded too.
    """
    files = files_under(source_dir)
    inside = source_dir.resolve()
    for name, path in files.items():
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            raise InvalidInputError(
                f"contains a link to a file outside it: {name}",
                field="training.source_dir",
                value=str(source_dir),
                fix="copy the file into the folder, or remove the link",
            )
    recorder = f"{RUNTIME_PACKAGE}/"
    own = {name: path for name, path in files.items() if not name.startswith(recorder)}
    if len(own) == len(files):
        if not runtime.is_dir():
            raise EnvironmentNotReadyError(
                f"{runtime} is missing",
                fix=f"install Compilegate again, or copy {RUNTIME_PACKAGE}/ into {source_dir}.",
            )
        files |= {f"{RUNTIME_PACKAGE}/{name}": path for name, path in files_under(runtime).items()}
        launcher = runtime.parent / LAUNCHER
        if launcher.is_file():
            files.setdefault(LAUNCHER, launcher)
    plain = _tar(files)
    return Bundle(
        body=gzip.compress(plain, mtime=0),
        digest=_digest(plain),
        code_digest=_digest(_tar(own)),
        names=tuple(sorted(files)),
    )


def _digest(plain: bytes) -> str:
    """Of what is not compressed: compression differs between zlib builds."""
    return hashlib.sha256(plain).hexdigest()[:DIGEST_LENGTH]


def files_under(folder: Path) -> dict[str, Path]:
    """Relative name to path of every file but hidden ones and compiled Python."""
    files = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        skipped = any(part.startswith(".") or part in SKIPPED_FOLDERS for part in parts)
        if not skipped and path.suffix not in SKIPPED_SUFFIXES and path.is_file():
            files["/".join(parts)] = path
    return files


def _tar(files: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            body = files[name].read_bytes()
            entry = tarfile.TarInfo(name)  # mtime, uid and gid are 0 unless set
            entry.size = len(body)
            entry.mode = 0o755 if files[name].stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


# Workloads of one team share a source folder; so many folders' bundles are kept.
KEPT = 4


class Packages:
    """Packs workload files; bundles of a source folder are made once. Safe for threads.

    The folders must not change as long as one of these is used.
    """

    def __init__(self) -> None:
        self._bundle = lru_cache(KEPT)(make_bundle)
        self._lock = threading.Lock()

    def pack(self, file: WorkloadFile) -> Package:
        """The file's package; raises as ``make_bundle``."""
        source_dir = file.source_dir.resolve()
        with self._lock:
            bundle = self._bundle(source_dir)
        return Package(
            workload=file.workload,
            source=bundle.body,
            source_digest=bundle.digest,
            inputs={channel: _input_files(place) for channel, place in file.local_inputs.items()},
            code_digest=bundle.code_digest,
        )


def package(file: WorkloadFile) -> Package:
    """What has to be uploaded for one workload file."""
    return Packages().pack(file)


def _input_files(place: Path) -> tuple[InputFile, ...]:
    """The files of a channel, each opened when it is read: it need not fit into memory."""
    files = files_under(place) if place.is_dir() else {place.name: place}
    rows = []
    for name, path in sorted(files.items()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        rows.append(InputFile(name, digest, partial(_opened, path)))
    return tuple(rows)


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")
