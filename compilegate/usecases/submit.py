"""Brings a workload to the cloud: source bundle, local inputs, and the spec that names them.

Everything lies under the digest of its contents, so submitting the same thing again
overwrites it with itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from compilegate.domain import naming
from compilegate.domain.workload.model import Workload
from compilegate.ports import ObjectStore
from compilegate.usecases.trial import Trial, to_json

DIGEST_LENGTH = 12
GZIP = "application/gzip"
BINARY = "application/octet-stream"


@dataclass(frozen=True)
class InputFile:
    """One file of a channel: its name there, its SHA-256, and how to get its bytes."""

    name: str
    sha256: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Package:
    """A workload with what has to be uploaded for it; ``inputs`` by channel."""

    workload: Workload
    source: bytes
    source_digest: str
    inputs: Mapping[str, tuple[InputFile, ...]]


def submit(package: Package, *, trial: str, store: ObjectStore) -> Trial:
    """Upload the package; returns the trial that an execution can start from."""
    workload = package.workload
    source_key = naming.source_key(workload.name, package.source_digest)
    store.put(source_key, package.source, GZIP)
    uploaded = {
        channel: _upload(workload.name, channel, files, store)
        for channel, files in sorted(package.inputs.items())
    }
    training = replace(workload.training, inputs={**workload.training.inputs, **uploaded})
    spec = to_json(
        {"workload": replace(workload, training=training).to_dict(), "source_key": source_key}
    )
    spec_key = naming.spec_key(workload.name, _digest(spec))
    store.put(spec_key, spec)
    return Trial(workload.name, trial, spec_key)


def _upload(workload: str, channel: str, files: tuple[InputFile, ...], store: ObjectStore) -> str:
    """Put a channel's files under one digest; returns the prefix's URI."""
    listing = "\n".join(f"{file.sha256} {file.name}" for file in files)
    prefix = naming.input_prefix(workload, channel, _digest(listing.encode()))
    for file in files:
        store.put(prefix + file.name, file.read(), BINARY)
    return f"s3://{store.bucket}/{prefix}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]
