"""Keeps synthesised assemblies, since making one takes longer than deploying it.

Synthesis is a pure function of the repository, so an assembly is good as long as no file that
the app reads has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from compilegate.localcloud.synth import synthesise

# Everything the app reads: itself, the Lambda bundle's sources and packages, and the locks that
# say which versions made them.
SOURCES = (
    "app.py",
    "cdk.json",
    "stacks",
    "lambdas",
    "compilegate",
    "build/lambda-packages",
    "requirements",
    "requirements.txt",
)
_KEPT = 3


def assembly_of(repository: Path, cache: Path, *, context: dict[str, str]) -> Path:
    """The assembly of the repository as it is now, made if it is not in the cache.

    Raises EnvironmentNotReadyError like ``synthesise``.
    """
    target = cache / _digest(repository, context)
    if not (target / "manifest.json").exists():
        cache.mkdir(parents=True, exist_ok=True)
        # Made beside and renamed, so that a half-made assembly is never taken for a whole one.
        with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as folder:
            made = synthesise(repository, Path(folder) / "assembly", context=context)
            if not (target / "manifest.json").exists():
                shutil.rmtree(target, ignore_errors=True)
            # Another process may have made the same one meanwhile, and be reading it.
            with contextlib.suppress(OSError):
                made.rename(target)
        _forget_old(cache)
    return target


def _digest(repository: Path, context: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps([sys.version, context], sort_keys=True).encode())
    for path in _files(repository):
        digest.update(str(path.relative_to(repository)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files(repository: Path) -> Iterator[Path]:
    for source in SOURCES:
        path = repository / source
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in found if file.is_file() and "__pycache__" not in file.parts)


def _forget_old(cache: Path) -> None:
    folders = [path for path in cache.iterdir() if not path.name.startswith(".")]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
