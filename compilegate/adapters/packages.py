"""What has to be uploaded for a workload file, from this disk."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from compilegate.adapters.bundle import Bundle, files_under, make_bundle
from compilegate.adapters.workload_files import WorkloadFile
from compilegate.usecases.registration.upload import InputFile, Package

# Workloads of one team share a source folder; so many folders' bundles are kept.
KEPT = 4


class Packages:
    """Packs workload files; bundles of a source folder are made once. Safe for threads.

    The folders must not change as long as one of these is used.
    """

    def __init__(self) -> None:
        self._bundles: OrderedDict[Path, Bundle] = OrderedDict()
        self._lock = threading.Lock()

    def pack(self, file: WorkloadFile) -> Package:
        """The file's package; raises as ``make_bundle``."""
        bundle = self._bundle(file.source_dir.resolve())
        return Package(
            workload=file.workload,
            source=bundle.body,
            source_digest=bundle.digest,
            inputs={channel: _input_files(place) for channel, place in file.local_inputs.items()},
            code_digest=bundle.code_digest,
        )

    def _bundle(self, source_dir: Path) -> Bundle:
        with self._lock:
            bundle = self._bundles.pop(source_dir, None) or make_bundle(source_dir)
            self._bundles[source_dir] = bundle
            if len(self._bundles) > KEPT:
                self._bundles.popitem(last=False)
            return bundle


def package(file: WorkloadFile) -> Package:
    """What has to be uploaded for one workload file."""
    return Packages().pack(file)


def _input_files(place: Path) -> tuple[InputFile, ...]:
    sources = files_under(place) if place.is_dir() else {place.name: place}
    return tuple(
        InputFile(name, _sha256(path), _opener(path)) for name, path in sorted(sources.items())
    )


def _opener(path: Path) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        return path.open("rb")

    return opened


def _sha256(path: Path) -> str:
    """Of a file that need not fit into memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
