"""Brings a workload to the cloud: source bundle, local inputs, and the spec that names them.

Everything lies under the digest of its contents, so what is there already is left there.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

from compilegate.domain import naming
from compilegate.domain.script_compiles import ScriptCompiles
from compilegate.domain.workload.model import Workload
from compilegate.ports import ObjectStore
from compilegate.usecases.records import Trial, to_json

DIGEST_LENGTH = 12
GZIP = "application/gzip"
BINARY = "application/octet-stream"
JSON = "application/json"


@dataclass(frozen=True)
class InputFile:
    """One file of a channel: its name there, its SHA-256, and how to open it."""

    name: str
    sha256: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True)
class Package:
    """A workload with what has to be uploaded for it; ``inputs`` by channel.

    ``code_digest`` is of the team's own part of the source, None where it is unknown.
    ``script_compiles`` is where the job's own script compiles.
    """

    workload: Workload
    source: bytes
    source_digest: str
    inputs: Mapping[str, tuple[InputFile, ...]]
    code_digest: str | None = None
    script_compiles: ScriptCompiles | None = None


@dataclass(frozen=True)
class Upload:
    """One object, and how to open what it is made from."""

    key: str
    open: Callable[[], BinaryIO]
    content_type: str


@dataclass(frozen=True)
class Shipment:
    """What has to lie in the bucket before anything can start from ``spec_key``."""

    spec_key: str
    spec: Mapping[str, object]
    uploads: tuple[Upload, ...]


def submit(package: Package, *, trial: str, store: ObjectStore) -> Trial:
    """Upload the package; returns the trial that an execution can start from."""
    shipment = prepare(package, store.bucket)
    upload(shipment, store)
    return Trial(package.workload.name, trial, shipment.spec_key)


def prepare(package: Package, bucket: str) -> Shipment:
    """Everything that the package is in the bucket, the spec last; uploads nothing."""
    workload = package.workload
    source_key = naming.source_key(workload.name, package.source_digest)
    uploads = [Upload(source_key, lambda: io.BytesIO(package.source), GZIP)]
    inputs = dict(workload.training.inputs)
    for channel, files in sorted(package.inputs.items()):
        prefix = _input_prefix(workload.name, channel, files)
        inputs[channel] = f"s3://{bucket}/{prefix}"
        uploads += [Upload(prefix + file.name, file.open, BINARY) for file in files]
    placed = replace(workload, training=replace(workload.training, inputs=inputs))
    spec = {"workload": placed.to_dict(), "source_key": source_key}
    if package.code_digest:
        spec["code_digest"] = package.code_digest
    if package.script_compiles:
        spec["script_compiles"] = package.script_compiles.to_dict()
    body = to_json(spec)
    spec_key = naming.spec_key(workload.name, _digest(body))
    uploads.append(Upload(spec_key, lambda: io.BytesIO(body), JSON))
    return Shipment(spec_key, spec, tuple(uploads))


def upload(shipment: Shipment, store: ObjectStore) -> int:
    """Put what is not there yet; returns how many objects that were."""
    missing = [item for item in shipment.uploads if not store.has(item.key)]
    for item in missing:
        with item.open() as stream:
            store.put_stream(item.key, stream, item.content_type)
    return len(missing)


def _input_prefix(workload: str, channel: str, files: tuple[InputFile, ...]) -> str:
    """Where a channel's files lie together, under one digest of them all."""
    listing = "\n".join(f"{file.sha256} {file.name}" for file in files)
    return naming.input_prefix(workload, channel, _digest(listing.encode()))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]
