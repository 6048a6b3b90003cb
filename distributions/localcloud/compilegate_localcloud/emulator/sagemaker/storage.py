"""What a training job reads from and writes to S3: channels, archives, checkpoints."""

from __future__ import annotations

import errno
import logging
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from botocore.exceptions import BotoCoreError, ClientError

from compilegate_localcloud.emulator.sagemaker.container import DEFAULT_CHECKPOINT_PATH, Layout
from compilegate_localcloud.emulator.sagemaker.failures import DamagedFolderError, JobFailedError

# Of this machine, not of what a job left behind.
_OURS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO})


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
    """Put the folder's contents as one tar.gz where SageMaker puts it; returns its URI.

    Raises DamagedFolderError where a part of it cannot be read.
    """
    bucket, prefix = split_uri(output_uri)
    key = "/".join(part for part in (prefix.rstrip("/"), job, "output", name) if part)
    with tempfile.TemporaryFile() as archive:
        try:
            with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
                for path in sorted(folder.iterdir()):
                    tar.add(path, path.name)
        except RecursionError:
            raise DamagedFolderError("its folders are too deep") from None
        except OSError as error:
            if error.errno in _OURS:
                raise
            raise DamagedFolderError(error.strerror or str(error)) from error
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


log = logging.getLogger("compilegate.sagemaker")


class Checkpoints:
    """Copies the folder from S3 before the job, and back while it runs and at its end."""

    def __init__(self, client: Any, request: dict[str, Any], layout: Layout) -> None:
        config = request.get("CheckpointConfig")
        self._client = client
        self._uri: str | None = config["S3Uri"] if config else None
        place = (config or {}).get("LocalPath") or DEFAULT_CHECKPOINT_PATH
        self._folder = Path(layout.mapped(place))
        self._uploaded: dict[Path, tuple[int, int]] = {}
        self._copying = threading.Lock()
        self._stopped = threading.Event()

    def restore(self) -> None:
        """Bring back what earlier jobs left."""
        if self._uri is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        download_prefix(self._client, self._uri, self._folder)
        for path in self._folder.rglob("*"):
            if path.is_file():
                state = path.stat()
                self._uploaded[path] = (state.st_mtime_ns, state.st_size)

    def save(self) -> None:
        """Copy what changed; a refused call is logged, since it must not fail a running job."""
        if self._uri is None:
            return
        with self._copying:
            try:
                if self._folder.is_symlink() or not self._folder.is_dir():
                    return
                upload_folder(self._client, self._folder, self._uri, self._uploaded)
            except (BotoCoreError, ClientError, OSError) as error:
                log.warning("checkpoints not copied to %s: %s", self._uri, error)

    def save_every(self, seconds: float) -> None:
        """Begin copying in the background until ``close``."""
        if self._uri is not None:
            threading.Thread(target=self._repeat, args=(seconds,), daemon=True).start()

    def close(self) -> None:
        """Stop copying in the background."""
        self._stopped.set()

    def _repeat(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            self.save()
