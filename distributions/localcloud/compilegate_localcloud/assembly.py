"""The CDK assembly of the app: made without the CDK command or an account, kept, and read.

Synthesis is a pure function of the repository, so an assembly is good as long as no file that
the app reads has changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from compilegate.place import INSTALLED, PACKAGE
from compilegate_localcloud.errors import NotReadyError

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
_STACK_TYPE = "aws:cloudformation:stack"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip entry can carry


@dataclass(frozen=True)
class Asset:
    """One file for S3; bucket and key may hold ``${AWS::...}`` placeholders."""

    bucket: str
    key: str
    body: bytes


@dataclass(frozen=True)
class StackArtifact:
    """One stack: its name, its template and the assets it refers to."""

    name: str
    template: bytes
    parameters: dict[str, str]
    assets: tuple[Asset, ...]


def assembly_of(repository: Path, cache: Path, *, context: dict[str, Any]) -> Path:
    """The assembly of the repository as it is now, made if it is not in the cache.

    Raises NotReadyError like ``synthesise``.
    """
    target = cache / _digest(repository, context)
    if not (target / "manifest.json").exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _alone_in(cache):
            # Another process may have made it meanwhile, and be reading it.
            if not (target / "manifest.json").exists():
                _make(target, repository, context)
    return target


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Waits until no other process or thread is here; the lock ends with whoever holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(target: Path, repository: Path, context: dict[str, Any]) -> None:
    # Made beside and renamed, so that no half-made assembly is ever used.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as folder:
        made = synthesise(repository, Path(folder) / "assembly", context=context)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    _forget_old(target.parent)


def _digest(repository: Path, context: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps([sys.version, context], sort_keys=True).encode())
    digest.update(version("aws-cdk-lib").encode())
    # An installed package holds all that the app reads.
    root, sources = (PACKAGE.parent, (PACKAGE.name,)) if INSTALLED else (repository, SOURCES)
    for path in _files(root, sources):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files(root: Path, sources: Sequence[str]) -> Iterator[Path]:
    for source in sources:
        path = root / source
        paths = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in paths if file.is_file() and "__pycache__" not in file.parts)


def _forget_old(cache: Path) -> None:
    folders = [path for path in cache.iterdir() if not path.name.startswith(".")]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def synthesise(repository: Path, output: Path, *, context: dict[str, Any]) -> Path:
    """Run ``app.py`` into the output folder, as ``cdk synth`` would; returns the folder.

    The app lays ``context`` over that of ``cdk.json``. Raises NotReadyError with the
    last line that the app printed if it fails.
    """
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(output),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    result = subprocess.run(
        [sys.executable, "app.py"],
        cwd=repository,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "")
        raise NotReadyError(
            f"The CDK app did not synthesise: {last}\nIn full: run `.venv/bin/python app.py`"
        )
    return output


def read_stacks(folder: Path) -> tuple[StackArtifact, ...]:
    """The stacks of an assembly, dependencies first.

    Raises NotReadyError for an assembly that cannot be deployed without Docker.
    """
    artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    ordered: list[str] = []

    def visit(name: str) -> None:
        for dependency in artifacts[name].get("dependencies", []):
            if dependency not in ordered:
                visit(dependency)
        if name not in ordered:
            ordered.append(name)

    for name in sorted(artifacts):
        visit(name)
    return tuple(
        _read_stack(folder, name, artifacts[name])
        for name in ordered
        if artifacts[name]["type"] == _STACK_TYPE
    )


def _read_stack(folder: Path, artifact: str, entry: dict[str, object]) -> StackArtifact:
    properties = entry.get("properties")
    if not isinstance(properties, dict):
        raise NotReadyError(f"Stack {artifact} has no properties in manifest.json.")
    return StackArtifact(
        name=str(properties.get("stackName", artifact)),
        template=(folder / str(properties["templateFile"])).read_bytes(),
        parameters=dict(properties.get("parameters", {})),
        assets=tuple(_read_assets(folder, folder / f"{artifact}.assets.json")),
    )


def _read_assets(folder: Path, listing: Path) -> Iterator[Asset]:
    document = json.loads(listing.read_text(encoding="utf-8"))
    if document.get("dockerImages"):
        raise NotReadyError(
            f"{listing.name} asks for Docker images; the local cloud has no Docker."
        )
    for entry in document.get("files", {}).values():
        source = entry["source"]
        path = folder / source["path"]
        body = zip_folder(path) if source["packaging"] == "zip" else path.read_bytes()
        for place in entry["destinations"].values():
            yield Asset(bucket=place["bucketName"], key=place["objectKey"], body=body)


def zip_folder(folder: Path) -> bytes:
    """The folder as a zip that is the same for the same contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), date_time=_EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (path.stat().st_mode & 0o777) << 16
                archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()
