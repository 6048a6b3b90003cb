"""The data bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO
from urllib.parse import urlparse

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code
from compilegate.domain.errors import NotFoundError, OverwrittenEvidenceError

ABSENT = ("NoSuchKey", "NoSuchBucket", "404", "NotFound", "AccessDenied", "403")


@dataclass(frozen=True)
class Fetched:
    """An object that may be larger than memory: ``size`` in bytes, ``stream`` to be read once.

    ``identity`` says which object was read, as a run's record keeps it: S3's ``output_etag``, and
    ``output_version`` where its bucket keeps versions.
    """

    size: int
    stream: IO[bytes]
    identity: Mapping[str, str] = field(default_factory=dict)


class S3Store:
    """ObjectStore on one bucket."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self._s3 = s3
        self.bucket = bucket

    def get(self, key: str) -> bytes:
        """An object's bytes; raises NotFoundError."""
        try:
            body: bytes = self._s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error_code(error) in ("NoSuchKey", "404"):
                raise NotFoundError(f"s3://{self.bucket}/{key} does not exist") from error
            raise
        return body

    def put(self, key: str, body: bytes, content_type: str = "application/json") -> None:
        """Write an object."""
        self._s3.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=content_type)

    def fetch(self, uri: str) -> Fetched:
        """The object at an s3:// URI in any bucket; raises NotFoundError.

        An object that may not be read counts as missing. Raises OverwrittenEvidenceError for one
        of the data bucket that was written more than once; versions of other buckets are not read.
        """
        parts = urlparse(uri)
        place = {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
        if parts.netloc == self.bucket:
            # This version and no other, should somebody write the next one meanwhile.
            place["VersionId"] = self._only_version(place["Key"])
        try:
            response = self._s3.get_object(**place)
        except ClientError as error:
            if error_code(error) in ABSENT:
                raise NotFoundError(f"{uri} does not exist or may not be read") from error
            raise
        identity = {
            "output_etag": response.get("ETag"),
            "output_version": response.get("VersionId"),
        }
        recorded = {name: value for name, value in identity.items() if value}
        return Fetched(int(response["ContentLength"]), response["Body"], recorded)

    def _only_version(self, key: str) -> str:
        """The version of an object that was written once.

        The first page has it: S3 lists keys in order, and those that go on after this one later.
        """
        page = self._s3.list_object_versions(Bucket=self.bucket, Prefix=key)
        written = [
            one["VersionId"]
            for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
            if one["Key"] == key
        ]
        if not written:
            raise NotFoundError(f"s3://{self.bucket}/{key} does not exist")
        if len(written) > 1:
            raise OverwrittenEvidenceError(
                f"s3://{self.bucket}/{key} was written {len(written)} times, and a job leaves its "
                f"output once: versions {', '.join(written)}"
            )
        return str(written[0])

    def put_stream(self, key: str, stream: BinaryIO, content_type: str) -> None:
        """Write an object from a file: a large one in parts, so that it need not fit into memory.

        In this thread, because callers with many files have threads of their own.
        """
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - Lambdas never need it

        self._s3.upload_fileobj(
            stream,
            self.bucket,
            key,
            ExtraArgs={"ContentType": content_type},
            Config=TransferConfig(use_threads=False),
        )

    def exists(self, uri: str) -> bool:
        """Whether an s3:// URI names an object or a prefix with at least one."""
        parts = urlparse(uri)
        try:
            response = self._s3.list_objects_v2(
                Bucket=parts.netloc, Prefix=parts.path.lstrip("/"), MaxKeys=1
            )
        except ClientError as error:
            if error_code(error) in ABSENT:
                return False
            raise
        return bool(response.get("KeyCount") or response.get("Contents"))

    def has(self, key: str) -> bool:
        """Whether the bucket holds an object of exactly this key.

        What may not be looked at counts as absent, so that it is written again.
        """
        try:
            self._s3.head_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error_code(error) in ABSENT:
                return False
            raise
        return True

    def folders(self, prefix: str) -> Iterator[str]:
        """Names directly below a prefix that ends with a slash, in order."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix, Delimiter="/"
        )
        for page in pages:
            for entry in page.get("CommonPrefixes", ()):
                yield entry["Prefix"].removeprefix(prefix).rstrip("/")
