"""Reads a synthesised CDK assembly: its stacks, and the files they need in S3."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError

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


def read_stacks(folder: Path) -> tuple[StackArtifact, ...]:
    """The stacks of an assembly, dependencies first.

    Raises EnvironmentNotReadyError for an assembly that cannot be deployed without Docker.
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
        raise EnvironmentNotReadyError(f"Stack {artifact} has no properties in manifest.json.")
    return StackArtifact(
        name=str(properties.get("stackName", artifact)),
        template=(folder / str(properties["templateFile"])).read_bytes(),
        parameters=dict(properties.get("parameters", {})),
        assets=tuple(_read_assets(folder, folder / f"{artifact}.assets.json")),
    )


def _read_assets(folder: Path, listing: Path) -> Iterator[Asset]:
    document = json.loads(listing.read_text(encoding="utf-8"))
    if document.get("dockerImages"):
        raise EnvironmentNotReadyError(
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
