"""What a training job reads from and writes to S3."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from botocore.exceptions import ClientError

from compilegate.localcloud.emulator.sagemaker.errors import JobFailedError


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and key of ``s3://bucket/key`` or ``https://s3.region.domain/bucket/key``."""
    parts = urlparse(uri)
    if parts.scheme == "s3":
        return parts.netloc, parts.path.lstrip("/")
    bucket, _, key = parts.path.lstrip("/").partition("/")
    return bucket, key


def download_prefix(client: Any, uri: str, folder: Path) -> int:
    """Copy every object under the prefix into the folder; returns how many."""
    bucket, prefix = split_uri(uri)
    count = 0
    for key in _keys(client, bucket, prefix):
        relative = key.removeprefix(prefix).lstrip("/") or key.rsplit("/", 1)[-1]
        target = (folder / relative).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise JobFailedError(f"ClientError: Object key {key!r} would leave its channel folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(bucket, key, str(target))
        count += 1
    return count


def upload_folder(
    client: Any, folder: Path, uri: str, uploaded: dict[Path, tuple[int, int]]
) -> None:
    """Copy files that are new or changed since ``uploaded``; delete in S3 what is gone here."""
    bucket, prefix = split_uri(uri)
    base = f"{prefix.rstrip('/')}/".lstrip("/")
    for path in sorted(folder.rglob("*")):
        try:
            if not path.is_file():
                continue
            state = path.stat()
            mark = (state.st_mtime_ns, state.st_size)
            if uploaded.get(path) == mark:
                continue
            client.upload_file(str(path), bucket, base + path.relative_to(folder).as_posix())
        except FileNotFoundError:
            continue  # the job replaces and removes files while they are copied
        uploaded[path] = mark
    for path in [path for path in uploaded if not path.exists()]:
        client.delete_object(Bucket=bucket, Key=base + path.relative_to(folder).as_posix())
        del uploaded[path]


def upload_archive(client: Any, folder: Path, output_uri: str, job: str, name: str) -> str:
    """Put the folder's contents as one tar.gz where SageMaker puts it; returns its URI."""
    bucket, prefix = split_uri(output_uri)
    key = "/".join(part for part in (prefix.rstrip("/"), job, "output", name) if part)
    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
            for path in sorted(folder.iterdir()):
                tar.add(path, path.name)
        archive.seek(0)
        client.upload_fileobj(archive, bucket, key)
    return f"s3://{bucket}/{key}"


def reason_of(error: ClientError) -> str:
    """The service's words for a refused S3 call."""
    detail = error.response.get("Error", {})
    return f"{detail.get('Code', 'Unknown')}: {detail.get('Message', error)}"


def _keys(client: Any, bucket: str, prefix: str) -> Iterator[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        for item in page.get("Contents", []):
            if not item["Key"].endswith("/"):
                yield item["Key"]
